"""How numbers are said: three digits that count, times in a unit that suits them, parts in percent; exact amounts."""

import math
from collections.abc import Iterator
from fractions import Fraction

UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def number(value: float | None) -> str:
    """The number with three significant digits, or a dash for none.

    >>> number(0.91234), number(12345.6), number(None), number(3.2e9), number(1e-9), number(0)
    ('0.912', '12,346', '-', '3.2e9', '1e-9', '0')
    """
    if value is None or math.isinf(value):
        return "-"
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}"
    if value and not 1e-4 <= abs(value) < 1e6:
        digits, _, power = f"{value:.1e}".partition("e")
        return f"{digits.removesuffix('.0')}e{int(power)}"
    return f"{value:.3g}"


def duration(microseconds: float) -> str:
    """The duration, rounded, in a unit that suits it.

    >>> [duration(seconds * 1_000_000) for seconds in (45, 5400, 86400, 129600, 31536000)]
    ['45s', '90m', '1d', '36h', '365d']
    """
    seconds = microseconds / 1e6
    for unit, name in UNITS:
        if seconds >= unit and seconds % unit == 0 or seconds >= 20 * unit:
            return f"{seconds / unit:,.0f}{name}"
    return f"{seconds:.3g}s"


def exact_duration(microseconds: int) -> str:
    """The shortest text that a configuration reads as the same duration.

    >>> exact_duration(7 * 86_400_000_000), exact_duration(90_000_000)
    ('7d', '90s')
    """
    seconds = microseconds // 1_000_000
    for unit, name in UNITS:
        if microseconds and microseconds % (unit * 1_000_000) == 0:
            return f"{seconds // unit}{name}"
    return f"{seconds}s"


def cadence(length: int | None) -> str:
    """Length of a tick as the configuration has it; "contribution" for None.

    >>> cadence(3_600_000_000), cadence(None)
    ('1h', 'contribution')
    """
    return "contribution" if length is None else duration(length)


def percent(part: float) -> str:
    """The part in percent, without digits that say nothing.

    >>> percent(0.0), percent(0.004), percent(0.256), percent(0.99999), percent(1.0)
    ('0 %', '<1 %', '26 %', '>99 %', '100 %')
    """
    if 0 < part < 0.01:
        return "<1 %"
    if 0.99 < part < 1:
        return ">99 %"
    return f"{part:.0%}".replace("%", " %")


def samples(count: float) -> str:
    """A number of samples.

    >>> samples(1), samples(2.5)
    ('1 sample', '2.5 samples')
    """
    return "1 sample" if count == 1 else f"{number(count)} samples"


def exact_text(number: Fraction) -> str:
    """The shortest text that `Fraction` reads back as the same number: a decimal where there is one, else n/d.

    >>> exact_text(Fraction("0.10")), exact_text(Fraction(4)), exact_text(Fraction(-5, 4)), exact_text(Fraction(1, 3))
    ('0.1', '4', '-1.25', '1/3')
    """
    places = _decimal_places(number.denominator)
    if places is None:
        return f"{number.numerator}/{number.denominator}"
    digits = str(abs(number.numerator) * 10**places // number.denominator).rjust(places + 1, "0")
    sign = "-" if number < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


def _decimal_places(denominator: int) -> int | None:
    """Decimal places that a fraction in lowest terms needs; None where no finite number of them is enough."""
    twos = fives = 0
    while denominator % 2 == 0:
        denominator, twos = denominator // 2, twos + 1
    while denominator % 5 == 0:
        denominator, fives = denominator // 5, fives + 1
    return max(twos, fives) if denominator == 1 else None


def many(count: int, what: str) -> str:
    """The number and the noun, in the plural where there are several.

    >>> many(1, "slot"), many(2, "slot")
    ('1 slot', '2 slots')
    """
    return f"{count} {what}" + ("s" if count > 1 else "")


def event_limit(most: int | None) -> Iterator[str]:
    """Clause of a guarantee on the number of events of a user that count; none without a limit."""
    if most is not None:
        yield f"at most {many(most, 'event')} of a user can count"
