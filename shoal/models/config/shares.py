"""Default shares of epsilon for finding keys and choosing ranges, and default share of units above a chosen range."""

from fractions import Fraction

from shoal.mechanisms.selection.upper_end import ENOUGH

SELECTION = Fraction(1, 5)  # for finding keys
SLOT_SELECTION = Fraction(1, 2)  # for finding the cells of a slot
CLIP = Fraction(1, 5)  # for choosing the range
CROSSING = Fraction(1, 50)  # for deciding when the range is chosen
ABOVE = Fraction(1, 100)  # of the units, where their number is not stated
LEAST_ABOVE, MOST_ABOVE = Fraction(1, 1000), Fraction(1, 20)
WAITED_FOR = Fraction(1, 3)  # of the stated users, before the range is chosen


def above(users: int | None, epsilon: Fraction) -> Fraction:
    """Share of units whose first value may lie above the range, so that a third of the stated users suffice.

    >>> [str(above(users, Fraction(1, 5))) for users in (None, 100, 20000, 10**6)]
    ['1/100', '1/20', '3/200', '1/1000']
    """
    wanted = ABOVE if users is None else ENOUGH / (epsilon * users * WAITED_FOR)
    return min(MOST_ABOVE, max(LEAST_ABOVE, wanted))
