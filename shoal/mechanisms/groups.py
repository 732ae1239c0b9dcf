"""Groups: what becomes of a tick, for all groups of one metric in one contributions partition. A cell is a group.

`stream` says which tick is over and hands out its contributions; a statistic says which groups are released, and with
what. Ticks are numbers. Most statistics compute each group by itself, with a releaser of its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from shoal.mechanisms.counters.binary import BinaryCounter, draw_together
from shoal.mechanisms.statistic import Activation, Contribution, Estimate, LevelState, Releaser

IsHome = Callable[[str], bool]  # whether a group ("" without one) is of this contributions partition
Rows = Iterable[tuple[str, list[Contribution]]]  # group ("" without one) and contributions in canonical order, by name
Kind = TypeVar("Kind", bound=Releaser)
TOGETHER = 1000  # groups that draw their noise together


def everywhere(group: str) -> bool:
    """The one partition that has all groups."""
    return True


class Closed(NamedTuple):
    """A group whose tick is complete."""

    group: str  # "" without one
    estimate: Estimate | None  # None: there is none yet
    activations: Sequence[Activation] = ()
    is_part: bool = False  # others are made of the same contributions, which wait until the tick is closed
    is_published: bool = True  # False: what came has changed its state, and nothing is released
    is_hidden: bool = False  # nobody is to know that it exists: its state is among the hidden changes


class Change(NamedTuple):
    """The change of a group's state besides its head."""

    group: str
    written: Sequence[Contribution] = ()
    dropped: Sequence[tuple[int, str]] = ()  # level and pseudonym


class Hidden(NamedTuple):
    """A record of a group that nobody is to know of yet."""

    group: str
    tick: int | None  # the record is about what came then; None: about the group
    value: Any | None  # a bounded list of ints, that of a group with how often it was written; None: it is dropped
    before: int = 0  # how often it was written before; 0: there was none


class Groups(Protocol):
    """All groups of one metric in one contributions partition."""

    def due(self) -> int | None:
        """The earliest tick in which a group is closed though nothing may come; None if there is none."""
        ...

    def close(self, tick: int, rows: Rows, after: str | None = None) -> Iterator[Closed | None]:
        """The groups that are released or take something in, in the order of their names; None gives the loop back.

        A transaction may end before any of them, and has the state of those that were yielded. A successor is given the
        contributions that still wait, and, if a part of what is made of them was released, the last group that was: it
        goes on behind it.
        """
        ...

    def changes(self) -> Iterable[Change]:
        """The changes of the groups that were closed since the last call and keep something besides their heads."""
        ...

    def hidden_changes(self) -> Iterable[Hidden]:
        """The records of hidden groups that changed since the last call; what came and went in between is left out."""
        ...

    def restore_hidden(self, group: str, tick: int | None, value: Any) -> None:
        """Take over the record of a hidden group."""
        ...

    def head(self, group: str) -> dict[str, Any]:
        """The state of a group but for what it keeps: a bounded object of ints, strings and lists."""
        ...

    def level(self, group: str, level: int) -> dict[str, Any] | None:
        """The state of one level of a group; None if it has no such level."""
        ...

    def restore(self, group: str, head: Mapping[str, Any], kept: Iterable[Contribution]) -> None:
        """Become the group that had this head and kept this."""
        ...


class NoisedByCounters(Releaser, Protocol):
    """A releaser whose noise is that of counters."""

    def ahead(self, contributions: Sequence[Contribution]) -> Iterable[tuple[BinaryCounter[Any], int]]:
        """The binary counters that an estimate is to ask once these have come, and at which release; each at most once.

        It changes nothing. Where more decides than the pattern so far it may be wrong: what it saves is time.
        """
        ...


class NoneHidden:
    """Groups of a statistic that hides none."""

    def hidden_changes(self) -> Iterable[Hidden]:
        return ()

    def restore_hidden(self, group: str, tick: int | None, value: Any) -> None:
        raise ValueError("the state has hidden groups, and this statistic has none")


class SlotGroups(NoneHidden):
    """Groups of a slot, of which nothing outlives the slot: each that was released has an empty head."""

    def __init__(self, close: Callable[[int, Rows, str | None], Iterator[Closed | None]]) -> None:
        self._close = close  # the releases of a slot, from its number, its rows and the last group that was released

    def due(self) -> int | None:
        """Always None: a slot without samples releases nothing."""
        return None

    def close(self, tick: int, rows: Rows, after: str | None = None) -> Iterator[Closed | None]:
        return self._close(tick, rows, after)

    def changes(self) -> Iterable[Change]:
        return ()

    def head(self, group: str) -> dict[str, Any]:
        return {"releaser": []}

    def level(self, group: str, level: int) -> None:
        """Always None: there are no levels."""

    def restore(self, group: str, head: Mapping[str, Any], kept: Iterable[Contribution]) -> None:
        """Do nothing: nothing is kept."""


def add_all(releaser: Releaser, contributions: Iterable[Contribution]) -> list[Activation]:
    """Give a releaser what came in a tick, in canonical order, at once if it can; return the levels it activated."""
    at_once: Callable[[Iterable[Contribution]], list[Activation]] | None = getattr(releaser, "add_all", None)
    if at_once is not None:
        return at_once(contributions)
    add = releaser.add
    return [activation for contribution in contributions for activation in add(contribution)]


class EachAlone(NoneHidden, Generic[Kind]):
    """Groups that are each computed alone."""

    def __init__(self, make: Callable[[bytes], Kind]) -> None:
        self._make = make  # a fresh releaser of a group
        self._releasers: dict[str, Kind] = {}
        self._changed: dict[str, None] = {}

    def releaser(self, group: str) -> Kind:
        """The releaser of a group, made on first sight."""
        releaser = self._releasers.get(group)
        if releaser is None:
            releaser = self._releasers[group] = self._make(group.encode())
        return releaser

    def due(self) -> int | None:
        """Always None: without contributions nothing is released."""
        return None

    def close(self, tick: int, rows: Rows, after: str | None = None) -> Iterator[Closed | None]:
        """Close the groups in which something came; groups that were released are not among the rows again."""
        for group, contributions in rows:
            yield self._close(group, contributions, tick)

    def _close(self, group: str, contributions: Iterable[Contribution], tick: int) -> Closed:
        releaser = self.releaser(group)
        activations = [*add_all(releaser, contributions), *releaser.close(tick)]
        self._changed[group] = None
        return Closed(group, releaser.estimate(), activations)

    def changes(self) -> Iterator[Change]:
        changed, self._changed = self._changed, {}
        for group in changed:
            written, dropped = self._releasers[group].take_changes()
            if written or dropped:
                yield Change(group, written, dropped)

    def head(self, group: str) -> dict[str, Any]:
        return {"releaser": self.releaser(group).head()}

    def level(self, group: str, level: int) -> dict[str, Any] | None:
        levels: Sequence[LevelState] = getattr(self.releaser(group), "levels", ())
        return levels[level]._asdict() if 0 <= level < len(levels) else None

    def restore(self, group: str, head: Mapping[str, Any], kept: Iterable[Contribution]) -> None:
        self.releaser(group).restore(head["releaser"], kept)


class DrawnTogether(EachAlone[NoisedByCounters]):
    """Groups that are each computed alone, but for their noise: a tick's groups draw it many at once.

    Which groups draw together changes no number. A group takes in what came when its turn has come, and not before: a
    transaction that ends before it may have its state of an earlier tick.
    """

    def close(self, tick: int, rows: Rows, after: str | None = None) -> Iterator[Closed | None]:
        rest = iter(rows)
        while some := list(islice(rest, TOGETHER)):
            draw_together(wanted for group, came in some for wanted in self.releaser(group).ahead(came))
            for group, contributions in some:
                yield self._close(group, contributions, tick)
