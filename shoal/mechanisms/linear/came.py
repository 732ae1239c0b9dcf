"""What came to a key whose counters have not begun: kept in all, or tick by tick for sums that forget.

Where a key's clip range is still to be chosen, samples are kept apart by the lowest rung that each is not above. Of
what is so kept the total under every rung follows: samples at rungs above it count with the rung, others with their own
sum. Beside them stand the units' numbers that the range is chosen from, which have no age.

    part                 holds                                                        total
    0                    samples, where nothing is chosen                             their sum
    NEWCOMERS            units that came to a key, of whom it is found                their weight
    SAMPLES_AT + rung    samples                                                      their sum
    NUMBERS_AT + rung    units, each at the rung of its first counted sample          none
"""

from collections.abc import Iterator
from typing import Any, Protocol

from shoal.mechanisms.selection.upper_end import RUNGS
from shoal.mechanisms.statistic import Contribution

NEWCOMERS = 1  # the part of a tick that holds how many units came to a key, and their weight
SAMPLES_AT = 2
NUMBERS_AT = SAMPLES_AT + RUNGS
PARTS = NUMBERS_AT + RUNGS

Came = tuple[int, Any]  # samples and total; without samples no total
NOTHING: Came = (0, None)


class Form(Protocol):
    """How what came is kept, as integers in lists."""

    def of(self, contribution: Contribution) -> Came:
        """What is kept of a contribution."""
        ...

    def plus(self, one: Came, other: Came) -> Came:
        """What came in one and the other."""
        ...

    def is_ageless(self, contribution: Contribution) -> bool:
        """Whether it is not kept by tick, whatever the sums do."""
        ...

    def contributions(self, age: int, came: Came) -> Iterator[Contribution]:
        """What is kept, as contributions; their effective time is their age in ticks."""
        ...


class Whole:
    """All samples together."""

    def of(self, contribution: Contribution) -> Came:
        return contribution.samples, contribution.total

    def plus(self, one: Came, other: Came) -> Came:
        """Totals of several sums are lists.

        >>> Whole().plus(NOTHING, (1, 7)), Whole().plus((1, 7), (2, 3)), Whole().plus((1, [7, 0]), (2, [3, 1]))
        ((1, 7), (3, 10), (3, [10, 1]))
        """
        total = one[1]
        if total is None:
            total = other[1]
        elif isinstance(total, list):
            total = [a + b for a, b in zip(total, other[1], strict=True)]
        else:
            total += other[1]
        return one[0] + other[0], total

    def is_ageless(self, contribution: Contribution) -> bool:
        return False

    def contributions(self, age: int, came: Came) -> Iterator[Contribution]:
        if came[0]:
            yield Contribution(age, "", 0, 0, *came)


class ByPart:
    """Part by part: [part, samples, total, ...], in the order of parts."""

    def of(self, contribution: Contribution) -> Came:
        return contribution.samples, [contribution.number, contribution.samples, contribution.total]

    def plus(self, one: Came, other: Came) -> Came:
        """Parts that both have add up.

        >>> ByPart().plus((3, [2, 1, 5, 4, 2, 6]), (1, [4, 1, 2])), ByPart().plus(NOTHING, (1, [4, 1, 2]))
        ((4, [2, 1, 5, 4, 3, 8]), (1, [4, 1, 2]))
        """
        parts = {part: (samples, total) for part, samples, total in _triples(one)}
        for part, samples, total in _triples(other):
            before = parts.get(part, (0, 0))
            parts[part] = before[0] + samples, before[1] + total
        return one[0] + other[0], [number for part in sorted(parts) for number in (part, *parts[part])]

    def is_ageless(self, contribution: Contribution) -> bool:
        return contribution.number >= NUMBERS_AT

    def contributions(self, age: int, came: Came) -> Iterator[Contribution]:
        for part, samples, total in _triples(came):
            yield Contribution(age, "", part, 0, samples, total)


def _triples(came: Came) -> Iterator[tuple[int, int, int]]:
    flat = iter(came[1] or ())
    return zip(flat, flat, flat, strict=True)
