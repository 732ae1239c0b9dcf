"""Looks: the ticks at which a group of a sharp mean decides whether it begins; and how long a group has waited.

Waiting is counted in ticks of event time, from the group's first tick with a contribution on, and includes ticks
without one, so the latest tick of a beginning is known at once. With a release per contribution, a tick is a release.
"""

from collections.abc import Sequence
from fractions import Fraction

from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.statistic import Estimate

DIGITS = 7  # significant bits of a look: each doubling of the ticks has 64 looks, for a decision takes long to compute


def stride(ticks: int) -> int:
    """Distance in ticks between two looks, after `ticks` ticks of waiting.

    >>> [stride(ticks) for ticks in (1, 127, 128, 2880)]
    [1, 1, 2, 32]
    """
    return 1 << max(0, ticks.bit_length() - DIGITS)


def last_look(ticks: int) -> int:
    """Latest look at or before a tick; ticks are counted from the group's first, which is 1.

    >>> [last_look(ticks) for ticks in (1, 127, 129, 2900)]
    [1, 127, 128, 2880]
    """
    return ticks - ticks % stride(ticks)


def next_look(ticks: int) -> int:
    """Earliest look at or after a tick; ticks are counted from the group's first, which is 1.

    >>> [next_look(ticks) for ticks in (1, 127, 129, 2900)]
    [1, 127, 130, 2912]
    """
    return -(-ticks // stride(ticks)) * stride(ticks)


class Wait:
    """Number of ticks that a group has waited, its first tick included.

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
        """Count a tick; return the latest look after the tick counted before, or None if there was none.

        tick: its number; None: ticks have no numbers, and this one is the next.
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
        """State of the wait: the ticks waited, and the number of the first tick if ticks have numbers."""
        return [self.ticks] if self.first is None else [self.ticks, self.first]

    def restore(self, head: Sequence[int]) -> None:
        """Take over a state that `head` returned."""
        self.ticks, self.first = head[0], head[1] if len(head) > 1 else None


def unknown(mean: MeanParameters, wait: Wait) -> Estimate:
    """Release of a group that waits: the middle of the range, with the ticks until the group begins at the latest."""
    grid, middle = mean.grid, Fraction(mean.grid.steps, 2)
    low, high = grid.mean_value(0, 1), grid.mean_value(grid.steps, 1)
    ahead = None if wait.first is None else mean.latest(wait.ticks) - wait.ticks
    value, half = grid.mean_value(middle, 1), grid.width_value(middle)
    return mean.named(Estimate(value, half, low, high, {"samples": 0}, ticks_ahead=ahead))
