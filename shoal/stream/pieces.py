"""What a release partition has made and nobody has taken yet, cut into transactions.

Whoever reads the releases sees where transactions end. Where presence is protected, that is a function of what is
released: a transaction has messages that were read, or releases of one tick of one metric, up to a fixed number. What
time and load decide is cut elsewhere only: between messages, and where groups are closed and none is released yet.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from shoal.stream.group import Activated, GroupOutput, GroupState, Released

GROUPS = 50_000  # that are closed in a transaction, whether they are released or not
RELEASES = 5_000  # of one tick, in a transaction, where presence is protected


@dataclass(slots=True)
class Made:
    """What was made since the last transaction, or piece of one."""

    changed: dict[str, GroupState] = field(default_factory=dict)
    closed: int = 0  # groups, released or not; more than once those of several ticks
    releases: list[GroupOutput] = field(default_factory=list)
    activations: list[Activated] = field(default_factory=list)
    events: int = 0


class Pieces:
    """Complete transactions in their order, and what is made of the next one."""

    def __init__(self, write: Callable[[Made], Released | None], *, alone: bool) -> None:
        """`write` makes a transaction; `alone`: whether each tick has transactions of its own."""
        self.made = Made()
        self.is_closing = False  # a tick with transactions of its own
        self._write, self._alone = write, alone
        self._complete: deque[tuple[Released, Made]] = deque()
        self._closed = 0  # groups that are closed in those

    @property
    def size(self) -> int:
        """Messages and closed groups that can be taken."""
        return self.closed + sum(made.events for made in self._takeable())

    @property
    def closed(self) -> int:
        """Closed groups that can be taken."""
        return self._closed if self.is_closing else self._closed + self.made.closed

    def _takeable(self) -> Iterator[Made]:
        yield from (made for _, made in self._complete)
        if not self.is_closing:
            yield self.made

    @property
    def has_room(self) -> bool:
        return (self._closed if self.is_closing else self._closed + self.made.closed) < GROUPS

    @property
    def has_complete(self) -> bool:
        return bool(self._complete)

    def before_closing(self) -> None:
        """A tick is about to be closed: what comes before it has a transaction of its own."""
        if self._alone:
            self._seal()
            self.is_closing = True

    def after_closing(self, *, is_open: bool) -> None:
        """A group of the tick was closed, or all are."""
        if self._alone and (self._is_full() or not is_open):
            self.is_closing = is_open
            self._seal()

    def _is_full(self) -> bool:
        """Whether a transaction ends here though its tick does not: by what is released, if anything is."""
        if self.made.releases:
            return len(self.made.releases) >= RELEASES
        return self.made.closed >= GROUPS

    def take(self) -> Released | None:
        """The next transaction."""
        if not self._complete and not self.is_closing:
            self._seal()
        if not self._complete:
            return None
        released, made = self._complete.popleft()
        self._closed -= made.closed
        return released

    def _seal(self) -> None:
        written = self._write(self.made)
        if written is not None:
            self._complete.append((written, self.made))
            self._closed += self.made.closed
            self.made = Made()
