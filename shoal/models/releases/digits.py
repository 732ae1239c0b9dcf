"""Numbers with as many digits as their noise leaves meaning in, and times.

What says how far noise reaches is rounded outward: fewer digits never make it smaller than it is.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

from shoal.models.printable import printable
from shoal.models.releases.numbers import Part

MIDNIGHT = "T00:00:00Z"
MOST_DECIMALS = 9
SMALLEST = 10.0**-MOST_DECIMALS
_EXACT = Context(prec=800)  # more digits than any float has


def when(at: str) -> str:
    """A time in UTC; of the midnight that a day ends with the date alone.

    >>> when("2026-01-05T00:00:00Z"), when("2026-01-05T13:00:00Z"), when("2026-01-05T13:00:30.5Z")
    ('2026-01-05', '2026-01-05 13:00', '2026-01-05 13:00:30.5')
    """
    if at.endswith(MIDNIGHT):
        return at.removesuffix(MIDNIGHT)
    return printable(at.replace("T", " ").removesuffix("Z").removesuffix(":00"))


def interval(part: Part) -> str:
    """A number, half of its noise interval, and the interval.

    >>> interval((34.6123, 33.312, 35.8124)), interval((1204.0, 1204.0, 1204.0)), interval((None, None, None))
    ('34.6 ± 1.3 (33.3 to 35.9)', '1,204 exactly', 'no release')
    >>> interval((61234.0, 21000.0, 101468.0)), interval((25.0, 0.0, 50.0)), interval((2.0, None, None))
    ('60,000 ± 50,000 (20,000 to 110,000)', '30 ± 30 (0 to 50)', '2')
    """
    number, low, high = part
    if number is None:
        return "no release"
    if low is None or high is None:
        return short(number, 0)
    half = _EXACT.subtract(Decimal(repr(high)), Decimal(repr(low))) / 2
    if half <= 0:
        return f"{short(number, 0)} exactly"
    ends = f"{short(low, half, ROUND_FLOOR)} to {short(high, half, ROUND_CEILING)}"
    return f"{short(number, half)} ± {reach(half)} ({ends})"


def reach(margin: float | Decimal) -> str:
    """How far noise reaches, with as few digits as `short` has, rounded up.

    >>> reach(25), reach(1.3), reach(2.07), reach(5e-324)
    ('30', '1.3', '3', '0.000000001')
    """
    return short(margin, margin, ROUND_CEILING)


def short(number: float | Decimal, margin: float | Decimal, rounding: str = ROUND_HALF_UP) -> str:
    """A number rounded to half of a margin's leading digit; without a margin as it is.

    >>> short(34.6123, 1.25), short(-0.2, 4), short(0.0012345, 0.0004), short(1204, 0), short(2.5, 0), short(25, 25)
    ('34.6', '0', '0.0012', '1,204', '2.5', '30')
    """
    if margin <= 0:
        return f"{number:,.0f}" if number == int(number) else f"{number:,.12g}"
    # Half of the smallest float is 0, which has no logarithm.
    power = max(-MOST_DECIMALS, math.floor(math.log10(max(margin, SMALLEST) / 2) + 1e-9))
    # As it is written in decimal: the float of 1.3 is a little more, and would be rounded up to 1.4.
    rounded = Decimal(str(number)).quantize(Decimal(1).scaleb(power), rounding, _EXACT)
    return f"{rounded if rounded else abs(rounded):,.{max(0, -power)}f}"  # and no negative zero
