"""Choices that follow from answers of `shoal init`: statistic, form of metric, unit of privacy, further questions."""

from collections.abc import Mapping
from fractions import Fraction

from shoal.agents.init.answers import FOUND, NONE, Answers
from shoal.mechanisms.parts.of import Count, Distribution, Mean, Sum, Users, Variance, WithValues
from shoal.mechanisms.parts.unit import PERSON, Unit
from shoal.mechanisms.privacy.accounting import Loss
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.config import forms
from shoal.models.config.forms import Form
from shoal.models.config.unit import parse_unit
from shoal.models.loss_words import LossWords, loss_words

EACH, ALL = "each", "all"
# Classes that release each statistic. PublicCount is not offered: a count under relation values is exact and public.
STATISTICS: Mapping[str, tuple[type, ...]] = {
    "mean": (Mean,), "sum": (Sum,), "count": (Count,), "users": (Users,), "variance": (Variance,),
    "distribution": (Distribution,),
}  # fmt: skip
FORMS: Mapping[tuple[str, str], tuple[Form, ...]] = {
    (VALUES, EACH): (forms.CELLS, forms.SUMS),
    (VALUES, ALL): (forms.MEAN, forms.VARIANCE, forms.SUMS),
    (ADD_REMOVE, EACH): (forms.HIDDEN_CELLS, forms.HIDDEN),
    (ADD_REMOVE, ALL): (forms.HIDDEN,),
}


def relations(said: Answers) -> list[str]:
    """Relations under which the chosen statistic exists over the chosen span, values first."""
    return [relation for relation in (VALUES, ADD_REMOVE) if _chosen(said, relation) is not None]


def statistic_of(said: Answers) -> str:
    """Name of the statistic in a configuration."""
    return _of(said)[0]


def form_of(said: Answers) -> Form:
    """Form of the metric that releases the statistic."""
    return _of(said)[1]


def _of(said: Answers) -> tuple[str, Form]:
    found = _chosen(said, said["relation"])
    assert found is not None  # noqa: S101 - the relation is one of `relations`
    return found


def _chosen(said: Answers, relation: str) -> tuple[str, Form] | None:
    classes = STATISTICS[said["statistic"]]
    names = ((name, cls, form) for form in FORMS[relation, said["span"]] for name, cls in form.statistics.items())
    return next(((name, form) for name, cls, form in names if cls in classes), None)


def has_value(said: Answers) -> bool:
    """Whether the statistic is one of values."""
    return issubclass(STATISTICS[said["statistic"]][0], WithValues)


def counts_users(said: Answers) -> bool:
    """Whether the statistic is users, to which a person adds 1 however many records there are."""
    return Users in STATISTICS[said["statistic"]]


def is_hidden(said: Answers) -> bool:
    """Whether presence is protected."""
    return said["relation"] == ADD_REMOVE


def has_group(said: Answers) -> bool:
    """Whether records are divided into groups."""
    return said["group"] != NONE


def is_each(said: Answers) -> bool:
    """Whether each tick has a result of its own records alone; else results are of all records so far."""
    return said["span"] == EACH


def finds_groups(said: Answers) -> bool:
    """Whether groups that nobody declared are found in private."""
    return said.get("groups") == FOUND


def limits_each_group(said: Answers) -> bool:
    """Whether the cap on a person's records holds in each group by itself; else over all groups."""
    return form_of(said) in (forms.MEAN, forms.CELLS)


def asks_max_groups(said: Answers) -> bool:
    """Whether a person's groups are limited by a number of their own."""
    return has_group(said) and (counts_users(said) or limits_each_group(said))


def tick(said: Answers) -> str:
    """Name of a tick in a sentence: day, hour or week, else its length, such as 12h."""
    return {"1d": "day", "24h": "day", "1h": "hour", "60m": "hour", "7d": "week"}.get(said["every"], said["every"])


def in_a_tick(said: Answers) -> str:
    """Time that a limit is for, in a sentence: " in a day" if each tick has a result of its own; else ""."""
    return f" in a {tick(said)}" if is_each(said) else ""


def whose(said: Answers) -> str:
    """Unit of privacy in a sentence, such as "one person in one day"."""
    return f"one person in one {tick(said)}" if is_each(said) else "one person"


def loss_of(said: Answers) -> LossWords:
    """Sentences on the loss of one unit."""
    delta = Fraction(said["delta"]) if finds_groups(said) else Fraction(0)
    loss = Loss(Fraction(said["epsilon"]), delta)
    return loss_words(unit_of(said), loss, needs_max_slots=form_of(said) is forms.CELLS)


def unit_of(said: Answers) -> Unit:
    """The unit that is protected: a person, or a person and the time of one tick."""
    return parse_unit(f"user-{said['every']}") if is_each(said) else PERSON
