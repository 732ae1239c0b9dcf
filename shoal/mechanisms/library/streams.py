"""Streams of users' samples: accounts bound what each user adds, ticks are closed by the caller, releases come out.

The accounts and groups are those that workers and `shoal run` drive, in the same way: within a tick, blocks that merge
are summed over users and come first, the others follow in the order of pseudonyms. Ticks are numbered; a tick of a
worker's that starts at time s of event time has the number s / every.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from shoal.mechanisms.accounts import Accounts, Site, WhyNotCounted
from shoal.mechanisms.groups import Groups
from shoal.mechanisms.library.keys import Transcript
from shoal.mechanisms.noise.keyed import pseudonymizer
from shoal.mechanisms.statistic import NO_ESTIMATE, PART_BITS, PART_MASK, Block, Bounder, Contribution, Estimate

Rows = list[tuple[str, list[Contribution]]]


class Statistic(Protocol):
    """The public parameters of what a stream releases."""

    def quantize(self, values: Sequence[int | float]) -> int: ...
    def bounder(self) -> Bounder: ...
    def in_groups(self, key: bytes) -> Groups: ...


class UserStream:
    """Samples of users in, releases out, as `open` of a statistic of users makes it.

    Shapes   `add(user, value, group)`: a str, an int or float (none of what only counts), and a str where the statistic
             has groups. `close()` ends the tick: a dict from group ("" where there are none) to `Estimate`, with those
             that this tick releases. `latest(group)`: the last one of a group, or None
    Units    values in those of the range, to which they are clipped; ticks are numbers, from `tick` on
    Raises   TypeError: a group too many or too few, a value that is no number, or none where one is due; ValueError: a
             value that is not a number (nan); KeyReused, by `close`: the key has released another input
    Source   the statistic's; whose samples count: docs/proofs/units.md

    `add` returns None if the sample counts, else why it does not: over_cap, groups_left_out, cells_left_out,
    undeclared. That is for the program alone where presence is protected. Samples of a tick may come in any order
    between users; to release the same again under a key they have to come in the same order.

    >>> from shoal.mechanisms import Key, PresenceStatistic, UserStream
    >>> here = PresenceStatistic(statistic="count", epsilon=10**9, max_contributions=2)
    >>> stream: UserStream = here.open(Key(bytes(range(32))).named("hardly any noise"))
    >>> [stream.add("ann"), stream.add("ann"), stream.add("ann"), stream.add("ben")]
    [None, None, 'over_cap', None]
    >>> stream.close()[""].value, stream.tick
    (3, 1)
    """

    def __init__(
        self, statistic: Statistic, secret: bytes, accounts: Callable[[Site, Bounder], Accounts], first: int,
        *, grouped: bool, valued: bool,
    ) -> None:  # fmt: skip
        self.tick = first  # number of the tick that is open
        bounder = statistic.bounder()
        self._statistic, self._grouped, self._valued, self._merges = statistic, grouped, valued, bounder.merges
        self._transcript, self._pseudonym = Transcript(secret), pseudonymizer(secret)
        self._transcript.note(first)
        self._groups = statistic.in_groups(secret)
        self._accounts = accounts(Site("", self._send, lambda user: True, durable=False), bounder)
        self._rows: dict[str, list[Contribution]] = {}  # of the open tick, by group
        self._cells: dict[str, dict[int, list[int]]] = {}  # likewise -> level and part -> samples, total
        self._latest: dict[str, Estimate] = {}

    def add(self, user: str, value: float | None = None, group: str | None = None) -> WhyNotCounted | None:
        """Take one sample of a user's in the open tick; None if it counts, else why it does not."""
        if (group is not None) != self._grouped:
            has = "has groups: say which" if self._grouped else "has no groups"
            raise TypeError(f"this statistic {has}")
        if (value is not None) != self._valued:
            raise TypeError("this statistic " + ("is of values: give one" if value is None else "takes no value"))
        if value is not None and value != value:
            raise ValueError("value is not a number")
        steps = self._statistic.quantize(() if value is None else (value,))
        self._transcript.note(user, group or "", steps)
        return self._accounts.add(user.encode(), group, steps, self.tick, self.tick)

    def close(self) -> dict[str, Estimate]:
        """End the open tick and begin the next one; what it releases, by group."""
        self._accounts.flush(self.tick + 1, idle=False)
        self._accounts.close(self.tick + 1)
        self._transcript.note("tick")
        self._transcript.release()
        rows, due = self._take(), self._groups.due()  # asked first, as by a worker: groups forget there what is void
        closed = list(self._groups.close(self.tick, rows)) if rows or due == self.tick else []
        for _ in (*self._groups.changes(), *self._groups.hidden_changes()):
            pass  # for a changelog, which there is not
        self.tick += 1
        released = {one.group: one.estimate or NO_ESTIMATE for one in closed if one is not None and one.is_published}
        self._latest |= released
        return released

    def latest(self, group: str = "") -> Estimate | None:
        """The last release of a group; None if it has none yet."""
        return self._latest.get(group)

    def _send(self, group: str | None, effective: int, user: bytes, block: Block) -> None:
        """Keep a block for the end of the tick."""
        number, level, samples, total, part = block
        name = group or ""
        if not self._merges or part is None:
            row = Contribution(effective, self._pseudonym(user), number, level, samples, total)
            self._rows.setdefault(name, []).append(row)
            return
        held = self._cells.setdefault(name, {}).setdefault(level << PART_BITS | part, [0, 0])
        held[0] += samples
        held[1] += total

    def _take(self) -> Rows:
        """The contributions of the tick by group, in canonical order."""
        rows, cells = self._rows, self._cells
        self._rows, self._cells = {}, {}
        return [
            (
                name,
                [
                    *(
                        Contribution(self.tick, "", cell & PART_MASK, cell >> PART_BITS, samples, total)
                        for cell, (samples, total) in sorted(cells.get(name, {}).items())
                    ),
                    *sorted(rows.get(name, ()), key=lambda row: row[:4]),
                ],
            )
            for name in sorted(rows.keys() | cells.keys())
        ]
