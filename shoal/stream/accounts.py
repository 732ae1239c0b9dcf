"""Books: the accounts of units that are periods, kept while their period is open.

An account is a user's number of samples and of groups in a period, over all groups. A period is open while an event can
have an effective time in it; then its book is closed, and the changelog loses it, a bounded number of records in each
transaction. A restart half way finds what is left and goes on. For a unit without periods there is one book, for ever.

Changelog keys: [period, 8 bytes] user for an account, [period] length of user, user, group for a group that a user is
in; the tags that go before them are the intake's.
"""

from collections import deque
from collections.abc import Iterator

from shoal.mechanisms.statistic import COUNT_BITS

PERIOD_BYTES = 8
ACCOUNT_BYTES = 8
ONE_GROUP = 1 << COUNT_BITS  # account = groups << COUNT_BITS | samples
MEMBER = b"\x01"  # value of a group that a user is in
Changes = list[tuple[bytes, bytes | None]]


class Book:
    """The accounts of one period."""

    __slots__ = ("accounts", "members", "prefix", "touched", "touched_members")

    def __init__(self, prefix: bytes) -> None:
        self.prefix = prefix  # of its keys
        self.accounts: dict[bytes, int] = {}
        self.members: dict[bytes, int] = {}  # (user, group): present or not
        self.touched: dict[bytes, int] = {}
        self.touched_members: list[bytes] = []


class Books:
    """All books of one metric in one source partition."""

    def __init__(self, length: int | None) -> None:
        self._length = length  # microseconds of a period
        self._open: dict[int, Book] = {}
        self._closed: deque[Book] = deque()
        self.forever = None if length else Book(b"")  # the one of a unit without periods
        if self.forever is not None:
            self._open[0] = self.forever

    def of(self, period: int) -> Book:
        """The book of a period, a new one if need be."""
        book = self._open.get(period)
        if book is None:
            book = self._open[period] = Book(period.to_bytes(PERIOD_BYTES, "big", signed=True))
        return book

    @property
    def sizes(self) -> list[int]:
        """Accounts, and groups of users, that the changelog holds: of closed books what is not dropped yet, too."""
        books = [*self._open.values(), *self._closed]
        return [sum(len(book.accounts) for book in books), sum(len(book.members) for book in books)]

    def restore(self, accounts: dict[bytes, int], members: dict[bytes, int]) -> None:
        """Sort what a changelog holds into books of periods; it is used up."""
        for found, is_account in ((accounts, True), (members, False)):
            while found:  # one by one: there may be many, and not twice in memory
                key, value = found.popitem()
                book = self.of(int.from_bytes(key[:PERIOD_BYTES], "big", signed=True))
                (book.accounts if is_account else book.members)[key[PERIOD_BYTES:]] = value

    def newest(self, name: bytes) -> int | None:
        """The account in the latest open period that has one of this name."""
        accounts = (self._open[period].accounts.get(name) for period in sorted(self._open, reverse=True))
        return next((account for account in accounts if account is not None), None)

    def take_changes(self, tag: bytes, members_tag: bytes) -> Changes:
        """Records of what changed since the last call."""
        changes: Changes = []
        for book in self._open.values():
            before, members_before = tag + book.prefix, members_tag + book.prefix
            touched = book.touched.items()
            changes += [(before + user, account.to_bytes(ACCOUNT_BYTES, "big")) for user, account in touched]
            changes += [(members_before + member, MEMBER) for member in book.touched_members]
        self.forget_changes()
        return changes

    def forget_changes(self) -> None:
        """Nobody asks for them."""
        for book in self._open.values():
            book.touched, book.touched_members = {}, []

    def close(self, promise: int) -> None:
        """No effective time will be before the promise: close the periods that end by then. Changes were taken."""
        if self._length is None:
            return
        for period in sorted(self._open):
            if (period + 1) * self._length > promise:
                break
            self._closed.append(self._open.pop(period))

    def drop(self, tag: bytes, members_tag: bytes, most: int) -> Changes:
        """Tombstones for records of closed books, the oldest first; what has its tombstone is forgotten."""
        dropped: Changes = []
        while self._closed and len(dropped) < most:
            book = self._closed[0]
            room = most - len(dropped)
            if book.accounts:
                dropped += [(tag + book.prefix + user, None) for user in _pop(book.accounts, room)]
            elif book.members:
                dropped += [(members_tag + book.prefix + member, None) for member in _pop(book.members, room)]
            else:
                self._closed.popleft()
        return dropped

    def forget_closed(self) -> None:
        """There is no changelog to drop them from."""
        self._closed.clear()


def _pop(found: dict[bytes, int], most: int) -> Iterator[bytes]:
    """So many keys at most, which are gone then."""
    for _ in range(min(most, len(found))):
        yield found.popitem()[0]
