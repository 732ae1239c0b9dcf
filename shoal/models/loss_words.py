"""Sentences on what is protected and what it costs: for check, label, page, notebook, map and `init`.

Every function takes plain values, such as a unit and a loss, and knows no configuration. No other module words a loss,
so that no two surfaces contradict one another (tests/agents/test_surfaces.py).
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from shoal.mechanisms.parts.unit import PERSON, USER_SLOT, Unit
from shoal.mechanisms.privacy.accounting import Loss, exp_above
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.mechanisms.words import exact_duration, many
from shoal.models.config.unit import most_in_days, parse_unit
from shoal.models.loss_numbers import amount, factor, rounded_up, six_digits, told

WEEK, YEAR = 7, 365  # days
SEEN_OF_PRESENCE = (
    "Public are this configuration, with its start, its end and the groups that it declares; the beats; and what is "
    "released. That topics grow, and when, is seen by those who may see the brokers."
)
COUNTS_BY_VALUES = (
    f"The ledger counts by {VALUES}, to which a metric of relation {ADD_REMOVE} is two steps: what follows is "
    "of a person whose values change, and twice what each metric says above of whether they are there."
)
EACH_PERIOD = "Epsilon protects a person in one of them. A person in k of them loses up to k times epsilon."
FOR_EVER = "One epsilon protects a person for ever."
_PUBLIC = {"group": "in which group"}  # what is known by a field of a role
_ALMOST = 99  # percent; beyond it a figure would hide that little is left to doubt
_CERTAIN = Fraction(100)  # an epsilon after which nothing is left to doubt
_LEAST, _MOST = Fraction(1, 10**30), 10**9  # epsilons of releases: text of others has hundreds of digits
_NO_LIMIT = "a week and a year have no limit"
_NO_SPAN = "without limit over time"


@dataclass(frozen=True, slots=True)
class LossWords:
    """Sentences on the loss of one unit and of one person over time."""

    brief: str  # the loss of one unit, per what and for how long, and the loss of a week and of a year
    each: str  # sentence: the loss of one unit
    several: str  # sentence: the loss of one person, in a week and in a year
    bound: str  # sentence: the unit with one epsilon for ever; empty where the loss has a limit already

    @property
    def cost(self) -> str:
        """All sentences in one paragraph."""
        return " ".join(filter(None, (self.each, self.several, self.bound)))


def loss_words(
    unit: Unit, loss: Loss, *, metrics: int = 1, apart: bool = False, needs_max_slots: bool = False
) -> LossWords:
    """Sentences on a loss of `loss` per `unit` in `metrics` metrics.

    `apart`: each unit has releases of its own, so that deltas add up. `needs_max_slots`: unit user needs that key, too.

    >>> said = loss_words(parse_unit("user-day"), Loss(Fraction(1)))
    >>> said.brief.partition(", in a year")[0]
    'epsilon = 1 per person and day, in a week (any 7 days) up to epsilon = 7'
    >>> said.several.partition(":")[0], said.bound
    ('One person in k days loses up to k times epsilon', 'For one epsilon for ever use unit = "user".')
    >>> loss_words(PERSON, Loss(Fraction(1))).cost
    'Per person, for ever: epsilon = 1. One person loses up to epsilon = 1 in a week, in a year and for ever.'
    """
    where = "" if metrics == 1 else f", in {metrics} metrics"
    whom, several = _over_time(unit, loss, apart=apart)
    slots = " and max_slots" if needs_max_slots else ""
    return LossWords(
        brief=f"{told(loss)} {whom}",
        each=f"{_capital(per(unit))}{where}: {told(loss)}.",
        several=several,
        bound="" if is_bounded(unit) else f'For one epsilon for ever use unit = "user"{slots}.',
    )


def is_bounded(unit: Unit) -> bool:
    """Whether the loss of one person has a limit, however long they take part."""
    return unit.of_a_user is not None if unit.is_event else unit == PERSON


def over(unit: Unit, loss: Loss, days: int, *, apart: bool = False) -> Loss | None:
    """Upper bound on the loss of one person in any `days` days of UTC; None where nothing limits the number of units.

    >>> day = parse_unit("user-day")
    >>> over(day, Loss(Fraction(1)), WEEK) == Loss(Fraction(1)).of_group(7)
    True
    >>> over(parse_unit("user-week"), Loss(Fraction(1)), YEAR) == Loss(Fraction(53))
    True
    """
    count = most_in_days(unit, days)
    if count is None:
        return None
    if not apart:
        return loss.of_group(count)
    return Loss(count * loss.epsilon, min(count * loss.delta, Fraction(1)))


def brief_of_release(epsilon: object, delta: object, unit: str, slot: int | None = None) -> str:
    """The loss that a release states of its metric; empty if it states none. `slot`: length in microseconds, if known.

    >>> brief_of_release(0.5, 0, "user")
    'epsilon = 0.5 per person, for ever'
    >>> brief_of_release(1.0, 1e-9, "user-slot")
    'epsilon = 1, delta = 1e-9 per person and slot, without limit over time'
    """
    loss = _stated(epsilon, delta)
    if loss is None:
        return ""
    if unit == USER_SLOT and slot is None:
        return f"{told(loss)} per person and slot, {_NO_SPAN}"
    try:
        known = Unit(USER_SLOT, slot) if unit == USER_SLOT else parse_unit(unit)
    except ValueError:
        return f"{told(loss)} per {unit}"
    # whether deltas of several units add up is not known of a release
    return f"{told(loss)} {_for_ever(known)}" if loss.delta else loss_words(known, loss).brief


def per(unit: Unit) -> str:
    """Whose loss an epsilon is.

    >>> [per(parse_unit(name)) for name in ("user", "user-day", "event")]
    ['per person, for ever', 'per person and day', 'per event']
    """
    return "per person, for ever" if unit == PERSON else f"per {unit.words()}"


def held(unit: Unit, epsilon: Fraction, delta: Fraction) -> str:
    """A budget, and whose it is.

    >>> held(parse_unit("user-day"), Fraction(4), Fraction(0))
    'epsilon = 4 per person and day, without limit over time'
    """
    return f"{amount(epsilon, delta)} {_for_ever(unit)}"


# ---------------------------------------------------------------- what is protected


def clause(unit: Unit, words: LossWords, relation: str) -> str:
    """What one metric protects and costs, as a clause of its guarantee."""
    covered = _covered(unit) if relation == VALUES else _presence(unit)
    return f"{words.brief}: {covered}, however often it is released"


def protected(unit: Unit, relation: str, fields: Iterable[str]) -> str:
    """The sentence on what is protected; `fields` are those with values, in order."""
    if relation == VALUES:
        done = "What an event says" if unit.is_event else "What a person did"
        return f"{done} is protected ({_fields(fields)})."
    whose = "an event" if unit.is_event else "a person"
    return (
        f"Whether {whose} is there at all is protected, with all that is in their records: when, in which group, how "
        "often, and what. This is what most people mean by differential privacy."
    )


def public(users: Iterable[str], paths: Sequence[tuple[str, str]], *, has_record_times: bool) -> str:
    """The sentence on what relation values does not protect; `paths` are pairs of a role and its field."""
    where = dict.fromkeys(_PUBLIC.get(role, "where") for role, _ in paths if role != "time")
    record = " and the records' timestamps" if has_record_times else ""
    what = names(["when", *where, "how often"])
    return (
        f"That they were there, {what}, is not protected ({_fields([*users, *(path for _, path in paths)])}{record})."
    )


def people(fields: Mapping[str, str]) -> str:
    """The sentence on who a person is, by the user field of each topic of a ledger; empty without any.

    >>> people({"purchases": "customer", "trips": "rider"})
    'In this ledger a person is: customer in purchases, rider in trips. Whoever has two values of it loses twice.'
    """
    named = ", ".join(f"{field} in {topic}" for topic, field in sorted(fields.items()))
    return f"In this ledger a person is: {named}. Whoever has two values of it loses twice." if named else ""


def other_unit(metric: str, unit: Unit, ledger: Unit, touched: int | None) -> str:
    """The sentence on a metric whose unit is not that of the ledger, one of which has a part in `touched`."""
    part = f": one {ledger.words()} has a part in up to {touched} of them, and all of these are counted here"
    more = ", which is more and counts once"
    article = "an" if unit.is_event else "a"
    return f"{metric} protects {article} {unit.words()}{more if touched == 1 else part}."


# ---------------------------------------------------------------- what that is worth


def seen(unit: Unit, loss: Loss, released: str, relation: str) -> Iterator[str]:
    """The sentences on what epsilon and delta mean; `released` names what releases."""
    yield (
        f"Whatever {released}, for ever: {_whose(unit, relation)} changes the probability of anything that can be seen "
        f"without the key by at most a {at_most(loss)} ({told(loss)})."
    )
    yield from beliefs(loss)


def headline(unit: Unit, words: LossWords, loss: Loss, relation: str) -> dict[str, str]:
    """The first paragraph of a page: up to the number, the number, and the rest."""
    return {
        "whole": f"Whatever is released here, for ever: {_whose(unit, relation)} changes what can be learned by at "
        "most a",
        "most": at_most(loss),
        "rest": " ".join([".", *beliefs(loss), words.cost]),
    }


def at_most(loss: Loss) -> str:
    """By how much a loss changes probabilities at most; rounded up.

    >>> at_most(Loss(Fraction(3), Fraction(1, 10**9))), at_most(Loss(Fraction(1)))
    ('factor of 20.1 and a further 1e-9', 'factor of 2.72')
    """
    return f"factor of {factor(loss)}" + (f" and a further {rounded_up(loss.delta)}" if loss.delta else "")


def beliefs(loss: Loss) -> Iterator[str]:
    """The sentence on what somebody may believe after a loss, where epsilon alone says it."""
    certain = _belief(loss) > _ALMOST
    if certain or not loss.delta:
        little = "; this budget protects little" if certain else ""
        yield f"Someone who thought something about it 10 % likely could come to {_may_think(loss)}{little}."


def habit(unit: Unit) -> str:
    """The sentence on what many units of one person reveal; empty where a person is one unit."""
    return "" if unit == PERSON else f"What shows in many {_plural(unit)}, as a habit does, is hardly protected."


def weakened(unit: Unit, before: Loss, after: Loss, relation: str = VALUES) -> str:
    """By how much all guarantees under a budget weaken when it is raised, if all of it is used.

    >>> weakened(PERSON, Loss(Fraction(1), Fraction(0)), Loss(Fraction(2), Fraction(0)))[-56:]
    'come to think it at most 45.1 % likely instead of 23.2 %'
    """
    return (
        f"the budget rises from {told(before)} to {held(unit, after.epsilon, after.delta)}. If all of it is used, "
        f"{_whose(unit, relation)} changes the probability of anything that can be seen by a factor of "
        f"{factor(after)} instead of {factor(before)}; someone who thought something about it 10 % likely could come "
        f"to {_may_think(after)}{_instead(after, before)}"
    )


# ---------------------------------------------------------------- what was charged


def ledger_holds(charged: Loss, budget: Loss) -> str:
    """The sentence on what a ledger was charged."""
    return f"The ledger then holds {told(charged)}, of a budget of {amount(budget.epsilon, budget.delta)}."


def page_holds(total: Loss, budget: Loss) -> str:
    """The sentence on the metrics of a page whose ledger is not at hand."""
    of = amount(budget.epsilon, budget.delta)
    return f"The sum on this page is {told(total)}, of a budget of {of}; a ledger may hold more."


def of_people(unit: Unit, count: int, losses: Iterable[tuple[Loss, bool]]) -> str:
    """The loss of any `count` units; each loss with whether it was converted from zCDP.

    >>> of_people(parse_unit("user-day"), 4, [(Loss(Fraction(4)), False)])
    'any 4 people in one day each lose at most epsilon = 4'
    >>> of_people(PERSON, 1, [(Loss(Fraction(1)), False)])
    'any person loses at most epsilon = 1'
    """
    ways = " or ".join(told(six_digits(loss) if zcdp else loss) + (" (zCDP)" if zcdp else "") for loss, zcdp in losses)
    whose = f"any {many(count, 'event')}" if unit.is_event else "any person" if count == 1 else f"any {count:,} people"
    when = "" if unit.period is None else f" in one {unit.span}{'' if count == 1 else ' each'}"
    return f"{whose}{when} {'loses' if count == 1 else 'lose'} at most {ways}"


# ---------------------------------------------------------------- parts of sentences


def _for_ever(unit: Unit) -> str:
    """Whose loss it is, and whether it has a limit over time."""
    return per(unit) + ("" if is_bounded(unit) else f", {_NO_SPAN}")


def _over_time(unit: Unit, loss: Loss, *, apart: bool) -> tuple[str, str]:
    """Whose loss it is, with that of a week and a year, as part of a sentence; and the sentence on several units."""
    week, year = (over(unit, loss, days, apart=apart) for days in (WEEK, YEAR))
    if unit == PERSON:
        return per(unit), f"One person loses up to {told(loss)} in a week, in a year and for ever."
    if week is None or year is None:
        return f"per event, {_NO_SPAN}", f"One person with k events loses up to k times epsilon: {_NO_LIMIT}."
    if unit.is_event:
        count = many(unit.of_a_user or 1, "event")
        return f"per event, per person up to {told(year)}, for ever", (
            f"One person loses up to {told(year)} in a week, in a year and for ever: at most {count} can count."
        )
    spans = f"in a week (any 7 days) up to {told(week)}, in a year (any 365 days) up to {told(year)}"
    return f"{per(unit)}, {spans}", f"One person in k {_plural(unit)} loses up to k times epsilon: {spans}."


def _stated(epsilon: object, delta: object) -> Loss | None:
    """The loss of two numbers from a release, which anybody may have written; None if they cannot be a loss."""
    if not all(isinstance(each, int | float | Fraction) for each in (epsilon, delta)):
        return None
    try:
        loss = Loss(Fraction(str(epsilon)), Fraction(str(delta)))
    except ValueError:
        return None  # not a number, infinite or negative
    return loss if _LEAST <= loss.epsilon <= _MOST else None


def _plural(unit: Unit) -> str:
    """Several units of one person: days, events, periods of 7d."""
    if unit.is_event:
        return "events"
    return f"{unit.span}s" if unit.span in ("hour", "day") else f"periods of {exact_duration(unit.period or 0)}"


def _covered(unit: Unit) -> str:
    if unit.is_event:
        return "the value of one event in this metric"
    return "all values of one person in this metric" + _in_one(unit, " of event time")


def _presence(unit: Unit) -> str:
    if unit.is_event:
        return "whether one event is there at all, and all that is in it"
    of_it = "" if unit.period is None else " of it"
    return (
        f"whether one person is there at all{_in_one(unit, ' of event time')}, and all that is in their records{of_it}"
    )


def _whose(unit: Unit, relation: str) -> str:
    by_values = relation == VALUES
    if unit.is_event:
        return "the value of one event" if by_values else "whether one event is there"
    return ("what one person did" if by_values else "whether one person is there") + _in_one(unit)


def _in_one(unit: Unit, of: str = "") -> str:
    return "" if unit.period is None else f" in one {unit.span}{of}"


def _may_think(loss: Loss) -> str:
    """What somebody may come to who thought something 10 % likely."""
    return "be all but certain of it" if _belief(loss) > _ALMOST else f"think it at most {_belief(loss):g} % likely"


def _instead(after: Loss, before: Loss) -> str:
    """What it was before a budget was raised, as the end of that sentence."""
    if _belief(before) > _ALMOST:
        return ", as before"
    if _belief(after) > _ALMOST:
        return f" instead of thinking it at most {_belief(before):g} % likely"
    return f" instead of {_belief(before):g} %"


def _belief(loss: Loss) -> float:
    """A belief of 10 %, in percent, once the odds of 1 to 9 have grown by the factor; rounded up."""
    odds = exp_above(min(loss.epsilon, _CERTAIN)) / 9
    return math.ceil(1000 * odds / (odds + 1)) / 10


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _fields(paths: Iterable[str]) -> str:
    listed = names(paths)
    return f"field{'s' if ' ' in listed else ''} {listed}"


def names(paths: Iterable[str]) -> str:
    """In order of first mention.

    >>> names(["x", "y", "x", "z"])
    'x, y and z'
    """
    *most, last = dict.fromkeys(paths)
    return f"{', '.join(most)} and {last}" if most else last
