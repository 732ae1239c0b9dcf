"""Numbers with as many digits as their noise leaves meaning in, times, and names that a terminal may show."""

import math

from shoal.agents.reading.fields import Part

MIDNIGHT = "T00:00:00Z"
MOST_DECIMALS = 9


def when(at: str) -> str:
    """A time in UTC; of the midnight that a day ends with the date alone.

    >>> when("2026-01-05T00:00:00Z"), when("2026-01-05T13:00:00Z"), when("2026-01-05T13:00:30.5Z")
    ('2026-01-05', '2026-01-05 13:00', '2026-01-05 13:00:30.5')
    """
    if at.endswith(MIDNIGHT):
        return at.removesuffix(MIDNIGHT)
    return printable(at.replace("T", " ").removesuffix("Z").removesuffix(":00"))


def printable(text: str) -> str:
    r"""The text without anything that moves a terminal's cursor or changes its colours.

    >>> printable("BE"), printable("a\x1b[2J\n")
    ('BE', 'a\\x1b[2J\\x0a')
    """
    return "".join(one if one.isprintable() else f"\\x{ord(one):02x}" for one in text)


def interval(part: Part) -> str:
    """A number, half of its noise interval, and the interval.

    >>> interval((34.6123, 33.312, 35.8124)), interval((1204.0, 1204.0, 1204.0)), interval((None, None, None))
    ('34.6 ± 1.3 (33.3 to 35.8)', '1,204 exactly', 'no release')
    >>> interval((61234.0, 21000.0, 101468.0)), interval((2.0, None, None))
    ('60,000 ± 40,000 (20,000 to 100,000)', '2')
    """
    number, low, high = part
    if number is None:
        return "no release"
    if low is None or high is None:
        return short(number, 0)
    half = (high - low) / 2
    if half <= 0:
        return f"{short(number, 0)} exactly"
    return f"{short(number, half)} ± {short(half, half)} ({short(low, half)} to {short(high, half)})"


def short(number: float, margin: float) -> str:
    """A number rounded to half of a margin's leading digit; without a margin as it is.

    >>> short(34.6123, 1.25), short(-0.2, 4), short(0.0012345, 0.0004), short(1204, 0), short(2.5, 0)
    ('34.6', '0', '0.0012', '1,204', '2.5')
    """
    if margin <= 0:
        return f"{number:,.0f}" if number == int(number) else f"{number:,.12g}"
    power = math.floor(math.log10(margin / 2) + 1e-9)
    rounded = round(number, -power) + 0.0  # and no negative zero
    return f"{rounded:,.{min(MOST_DECIMALS, max(0, -power))}f}"
