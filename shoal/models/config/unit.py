"""Units: whose data one guarantee covers.

    user           all of a person's values, for ever
    user-day, ...  those of one period of event time; the next period has a guarantee of its own
    event          one event; weak, since a person has many

Periods are half-open, of equal length, and begin at multiples of it since the Unix epoch (a week begins on a Thursday).

A ledger protects one unit, and its metrics may have others. One unit of the ledger's touches, of a metric's units,

    1 + (L + M - gcd(L, M) - 1) // M    for periods of L and M; the last unit begins just before the ledger's ends
    1                                   of a metric of unit user, or of a ledger of unit event
    max_events_per_user                 of a metric of unit event that has such a limit, under any other ledger
    any number                          else

and k of them together lose what a group of k does (shoal/mechanisms/privacy/accounting.py).

A ledger also counts by one relation, and a metric may have another (docs/proofs/accounting.md):

    by values      to a metric of relation add-remove, other values of a unit are two steps: its records go, and come
                   back with other values; 2 k
    by add-remove  a unit of the metric's that lies wholly in the ledger's goes with it, one step; of one that is cut,
                   all records go, and those outside come back: two steps, and at most two are cut; k + 2
                   a metric of relation values has no bound: it publishes who contributes
"""

from fractions import Fraction
from math import gcd

from shoal.mechanisms.parts.unit import PERIODS, PERSON, USER_SLOT, Unit
from shoal.mechanisms.privacy.accounting import Loss
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.config.durations import parse_duration
from shoal.models.config.section import DAY, positive_span

Relations = tuple[str, str]  # of a ledger and of a metric in it
SAME: Relations = (VALUES, VALUES)


def parse_unit(text: str) -> Unit:
    """The unit of that name.

    >>> parse_unit("user-day").period == parse_unit("user-24h").period == DAY
    True

    Raises:
        ValueError: there is no such unit.
    """
    if text in ("user", "event"):
        return Unit(text, is_event=text == "event")
    kind, _, length = text.partition("-")
    if kind != "user":
        raise ValueError(f"{text!r} does not exist; write user, user-day, user-hour, user-week, user-12h or event")
    if length in PERIODS:
        return Unit(text, PERIODS[length])
    try:
        return Unit(text, positive_span(parse_duration(length)))
    except ValueError:
        raise ValueError(f"{text!r} has no period; write user-day, user-hour, user-week or user-12h") from None


def most_touched(ledger: Unit, unit: Unit) -> int | None:
    """The most units of a metric that one unit of the ledger has a part in; None if there is no most.

    >>> [most_touched(parse_unit("user-day"), parse_unit(name)) for name in ("user", "user-week", "user-5h", "event")]
    [1, 1, 6, None]
    >>> [most_touched(parse_unit(name), parse_unit("user-day")) for name in ("user", "user-week", "user-5h", "event")]
    [None, 7, 2, 1]
    >>> most_touched(PERSON, Unit("event", is_event=True, of_a_user=24))
    24
    """
    if ledger.is_event or ledger == unit or unit == PERSON:
        return 1
    if unit.is_event:
        return unit.of_a_user
    if ledger.period is None or unit.period is None:
        return None
    return 1 + (ledger.period + unit.period - gcd(ledger.period, unit.period) - 1) // unit.period


def most_in_days(unit: Unit, days: int) -> int | None:
    """The most units of one person that have a part in any `days` days of UTC; None if there is no most.

    >>> [most_in_days(parse_unit(name), 7) for name in ("user", "user-day", "user-hour", "user-week", "event")]
    [1, 7, 168, 2, None]
    >>> [most_in_days(parse_unit(name), 365) for name in ("user", "user-day", "user-hour", "user-week", "user-30d")]
    [1, 365, 8760, 53, 14]
    """
    if unit.period is None:
        return unit.of_a_user if unit.is_event else 1
    return 1 + (days * DAY + unit.period - gcd(DAY, unit.period) - 1) // unit.period


def most_steps(ledger: Unit, unit: Unit, relations: Relations = SAME) -> int | None:
    """The most neighbours of a metric's, one after another, from one neighbour of the ledger's to the other.

    None if there is no most.

    >>> most_steps(PERSON, PERSON), most_steps(PERSON, PERSON, (VALUES, ADD_REMOVE))
    (1, 2)
    >>> both = ADD_REMOVE, ADD_REMOVE
    >>> [most_steps(parse_unit("user-day"), parse_unit(name), both) for name in ("user-day", "user-12h", "user-5h")]
    [1, 2, 8]
    >>> [most_steps(parse_unit(name), PERSON, both) for name in ("user", "user-day", "event")]
    [1, 2, 2]

    Raises:
        ValueError: what the metric publishes has no bound in this ledger.
    """
    if relations == (ADD_REMOVE, VALUES):
        raise ValueError(
            f"relation {VALUES} in a ledger that counts by {ADD_REMOVE}: it publishes who contributes, and no epsilon "
            "covers that; give it a file, an app and an audit log of its own"
        )
    touched = most_touched(ledger, unit)
    if touched is None or relations == SAME:
        return touched
    return 2 * touched if relations == (VALUES, ADD_REMOVE) else touched + min(_most_cut(ledger, unit), touched)


def _most_cut(ledger: Unit, unit: Unit) -> int:
    """How many of a metric's units may lie only partly in one unit of the ledger's: its first and its last."""
    if unit.is_event or ledger == unit:
        return 0
    whole = ledger.period is not None and unit.period is not None and ledger.period % unit.period == 0
    return 0 if whole else 2


def charge(
    ledger: Unit,
    unit: Unit,
    epsilon: Fraction,
    delta: Fraction,
    *,
    apart: bool = False,
    relations: Relations = SAME,
) -> tuple[Fraction, Fraction]:
    """The cost of a metric for a unit of the ledger's: epsilon exactly, delta rounded up to twenty digits.

    apart: each of the metric's units has releases of its own, which no other one moves, as slots have. Then losses add
    up (composition), and delta does not grow with epsilon, as it does where the same releases see several (groups).

    >>> day = parse_unit("user-day")
    >>> [float(cost) for cost in charge(day, parse_unit("user-5h"), Fraction("0.1"), Fraction(0))]
    [0.6, 0.0]
    >>> [float(cost) for cost in charge(day, parse_unit("user-12h"), Fraction(1), Fraction("1e-9"))]
    [2.0, 3.7182818284590454e-09]
    >>> [float(cost) for cost in charge(day, parse_unit("user-12h"), Fraction(1), Fraction("1e-9"), apart=True)]
    [2.0, 2e-09]
    >>> [float(cost) for cost in charge(PERSON, PERSON, Fraction(1), Fraction("1e-9"), relations=(VALUES, ADD_REMOVE))]
    [2.0, 3.7182818284590454e-09]

    Raises:
        ValueError: there is no bound, or none that says anything.
    """
    touched = most_steps(ledger, unit, relations)
    if not epsilon and not delta:
        return epsilon, delta  # nothing, however often: a count is public
    slots = " and max_slots" if unit.name == USER_SLOT else ""
    limit = ", or max_events_per_user" if unit.is_event and touched is None else ""
    remedy = f'set [privacy] unit = "{unit.spelled}", or unit = "{ledger.name}"{slots}{limit} here'
    if touched is None:
        raise ValueError(
            f"unit {unit.name} under a ledger per {ledger.words()}: one {ledger.words()} has any number of them, and "
            f"epsilon as often; {remedy}"
        )
    cost = (
        Loss(touched * epsilon, min(touched * delta, Fraction(1))) if apart else Loss(epsilon, delta).of_group(touched)
    )
    if cost.delta >= 1:
        raise ValueError(
            f"unit {unit.name} under a ledger per {ledger.words()}: one {ledger.words()} has up to {touched} of them, "
            f"and delta would be 1 or more; {remedy}, or make epsilon smaller"
        )
    return cost.epsilon, cost.delta
