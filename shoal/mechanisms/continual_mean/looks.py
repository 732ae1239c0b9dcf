"""Ticks at which a mean that waits decides whether it begins, and how long one of its groups has waited.

A tick of a group counts from the first one in which anything came to it, and counts whether anything came in it or not:
so a wait ends at a time that is known beforehand. Where each contribution has a release, a tick is a release.
"""

from collections.abc import Sequence
from fractions import Fraction

from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.statistic import Estimate

DIGITS = 7  # of a tick's number: 64 to 128 looks in each doubling of the ticks are enough


def stride(ticks: int) -> int:
    """The ticks from one look to the next, at this number of ticks.

    >>> [stride(ticks) for ticks in (1, 127, 128, 2880)]
    [1, 1, 2, 32]
    """
    return 1 << max(0, ticks.bit_length() - DIGITS)


def last_look(ticks: int) -> int:
    """The last tick up to this one at which there is a look.

    >>> [last_look(ticks) for ticks in (1, 127, 129, 2900)]
    [1, 127, 128, 2880]
    """
    return ticks - ticks % stride(ticks)


def next_look(ticks: int) -> int:
    """The first tick from this one on at which there is a look.

    >>> [next_look(ticks) for ticks in (1, 127, 129, 2900)]
    [1, 127, 130, 2912]
    """
    return -(-ticks // stride(ticks)) * stride(ticks)


class Wait:
    """The ticks that a group has waited, its first one included.

    >>> wait = Wait()
    >>> [wait.look(tick) for tick in (100, 101, 105)], wait.ticks
    ([1, 2, 6], 6)
    >>> [wait.look(tick) for tick in (227, 228, 229)]
    [128, None, 130]
    """

    __slots__ = ("first", "ticks")

    def __init__(self) -> None:
        self.first: int | None = None  # number of the group's first tick; None: its ticks have no numbers
        self.ticks = 0

    def look(self, tick: int | None) -> int | None:
        """Complete this tick; the look since the tick before it, or None if there was none.

        tick: its number; None: it follows upon the one before.
        """
        before = self.ticks
        if tick is None:
            self.ticks += 1
        else:
            if self.first is None:
                self.first = tick - before  # not 0 in a state of a version that counted releases
            self.ticks = tick - self.first + 1
        look = last_look(self.ticks)
        return look if look > before else None

    def head(self) -> list[int]:
        """The state: ticks, and the number of the first one if it has a number."""
        return [self.ticks] if self.first is None else [self.ticks, self.first]

    def restore(self, head: Sequence[int]) -> None:
        """Become the wait that had this state."""
        self.ticks, self.first = head[0], head[1] if len(head) > 1 else None


def unknown(mean: MeanParameters, wait: Wait) -> Estimate:
    """Release of a group that waits: the middle of the range, with the ticks until the group begins at the latest."""
    grid, middle = mean.grid, Fraction(mean.grid.steps, 2)
    low, high = grid.mean_value(0, 1), grid.mean_value(grid.steps, 1)
    ahead = None if wait.first is None else mean.latest(wait.ticks) - wait.ticks
    value, half = grid.mean_value(middle, 1), grid.width_value(middle)
    return mean.named(Estimate(value, half, low, high, {"samples": 0}, ticks_ahead=ahead))
