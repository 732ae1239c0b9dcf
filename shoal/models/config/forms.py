"""Forms of metrics: the keys that a form lacks, its statistics and algorithms, and the rules between its parts."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from shoal.mechanisms.continual_mean import MEANS
from shoal.mechanisms.continual_mean import rules as means
from shoal.mechanisms.linear import rules as sums
from shoal.mechanisms.moments import GRID
from shoal.mechanisms.parts import by, of
from shoal.mechanisms.parts.rules import Rule, names_of
from shoal.mechanisms.parts.unit import USER_SLOT
from shoal.mechanisms.slot import rules as slots
from shoal.mechanisms.spec import ADD_REMOVE, PER_SLOT, VALUES
from shoal.models.config.metric_keys import MetricKeys


class Block(NamedTuple):
    """Keys that a form lacks, and the refusal of one that is given: KEY `why``remedy`."""

    keys: tuple[str, ...]
    why: str
    remedy: str = "; remove it"


AT_SLOT_END = "is not for statistics per slot, which are released at its end"
NOT_HIDDEN = f"is not for relation {ADD_REMOVE}"
OF_MEANS = "is for means without a decay"
OVER_ALL = f"is for relation values: under {ADD_REMOVE} max_contributions limits a unit in all cells and slots together"

PRESENCE = Block(("groups", "start", "end", "selection", "clip"), f"is for relation {ADD_REMOVE}")
EXACT = Block(
    ("contribution_cap", "min_users", "spread_share"),
    f"goes by how many there are, which relation {ADD_REMOVE} protects",
)
CELL_LIMITS = Block(("max_cells", "max_slots", "across_cells"), OVER_ALL)
SLOTS = Block(("slot", "cell", *CELL_LIMITS.keys, *EXACT.keys), f"is for statistics per slot: {', '.join(PER_SLOT)}")
BINS = Block(("bins", "quantiles"), f"is for a slot-distribution, or for a distribution under relation {ADD_REMOVE}")
SLOT_BINS = Block(BINS.keys, "is for a slot-distribution")
ASSUMPTIONS = Block(("prior", "sigma"), OF_MEANS)
WITHHELD = Block(("withheld",), OF_MEANS)
CADENCE = Block(("every", "step", "decay", "life"), AT_SLOT_END)
UNCOUNTED = Block(("prior", "sigma", "simultaneous", "withheld"), NOT_HIDDEN)
EVENT_LIMIT = Block(("max_events_per_user",), NOT_HIDDEN)
USERS = Block(("users",), NOT_HIDDEN)
CLIP = Block(("clip",), "is for means and sums of every step: a slot has no earlier values to choose by")
EVERY = Block(("every",), f"{OF_MEANS}; a {{statistic}} is released at every step", remedy="")


FOR_CELLS = (by.Best, by.Baseline)  # algorithms of statistics per slot other than the mean


class Form(NamedTuple):
    """Class of metrics with the same keys: their statistics, algorithms, missing keys and rules."""

    statistics: Mapping[str, type]  # class of the part `of`, by name in configurations
    algorithms: tuple[type[by.Algorithm], ...]
    what: str  # metrics of this form, in a sentence
    lacks: tuple[Block, ...]
    rules: tuple[Rule, ...]
    cadence: str = "step"  # key that says when releases are made
    is_hidden: bool = False  # whether its relation is add-remove

    def algorithm_of(self, keys: MetricKeys) -> type[by.Algorithm]:
        """The class of the metric's algorithm.

        Raises:
            ValueError: the form lacks it.
        """
        allowed = self.algorithms
        if by.Best in allowed and self.statistics[keys.statistic] is not of.Mean:
            allowed = FOR_CELLS
        for algorithm in allowed:
            if algorithm.name == keys.algorithm:
                return algorithm
        if self.is_hidden:
            raise ValueError(f"algorithm {keys.algorithm} is for relation values; remove it")
        what = self.what.format(statistic=keys.statistic)
        raise ValueError(f"{keys.algorithm} is not for {what}; use one of: {names_of(allowed)}")

    def refuse_lacking(self, keys: MetricKeys) -> None:
        """Refuse keys that metrics of this form lack.

        Raises:
            ValueError: the first of them that is given.
        """
        lacks = self.lacks
        if self.statistics[keys.statistic] is not of.Distribution:
            lacks = (*lacks, SLOT_BINS if self.cadence == "slot" else BINS)
        for block in lacks:
            refuse(keys, block.keys, block.why.format(statistic=keys.statistic), block.remedy)


def refuse(keys: MetricKeys, names: tuple[str, ...], why: str, remedy: str = "; remove it") -> None:
    """Raise for the first of `names` that is given.

    Raises:
        ValueError: one is given.
    """
    for name in names:
        if getattr(keys, name) is not None:
            raise ValueError(f"{name} {why}{remedy}")


def _named(*classes: type[of.Of], prefix: str = "") -> dict[str, type]:
    return {prefix + cls.name: cls for cls in classes}


SLOTTED = _named(of.Mean, of.MeanVariance, of.Distribution, prefix="slot-")
MEAN = Form(
    _named(of.Mean),
    MEANS,
    "means without a decay",
    (PRESENCE, SLOTS),
    means.RULES,
    cadence="every",
)
SUMS = Form(
    _named(of.Mean, of.Sum, of.PublicCount),
    (by.Sharp, by.Patent),
    "what has a step",
    (PRESENCE, SLOTS, EVERY, ASSUMPTIONS, WITHHELD),
    sums.OF_VALUES,
)
VARIANCE = SUMS._replace(statistics=_named(of.Variance))
CELLS = Form(
    SLOTTED,
    (by.Best, by.Baseline, by.ArrayAveraging, by.Levy, by.FixedQuantile, by.EpsilonQuantile, by.FewUsers),
    "a {statistic}",
    (PRESENCE, CADENCE, Block(WITHHELD.keys, f"{OF_MEANS}; a slot says what is dropped")),
    slots.RULES,
    cadence="slot",
)
HIDDEN = Form(
    _named(of.Mean, of.Sum, of.Count, of.Users, of.MeanVariance, of.Distribution),
    (by.TwoSided,),
    "",
    (SLOTS, UNCOUNTED, EVENT_LIMIT),
    sums.OF_PRESENCE,
    is_hidden=True,
)
HIDDEN_CELLS = Form(
    SLOTTED,
    (by.TwoSided,),
    "",
    (Block((*CADENCE.keys, "withheld"), AT_SLOT_END), USERS, UNCOUNTED, EVENT_LIMIT, CLIP, EXACT, CELL_LIMITS),
    sums.OF_SLOTS,
    cadence="slot",
    is_hidden=True,
)
FORMS: Mapping[str, tuple[Form, ...]] = {VALUES: (CELLS, SUMS, VARIANCE, MEAN), ADD_REMOVE: (HIDDEN_CELLS, HIDDEN)}
ALL = (MEAN, SUMS, CELLS, VARIANCE, HIDDEN, HIDDEN_CELLS)
STATISTICS = tuple(dict.fromkeys(name for form in ALL for name in form.statistics))
ALGORITHMS = tuple(dict.fromkeys(algorithm.name for form in ALL for algorithm in form.algorithms))


def defaults_of(statistic: object, relation: object = VALUES) -> dict[str, Any]:
    """Defaults of keys that a statistic has of its own; empty for a name that no statistic has."""
    if not isinstance(statistic, str) or not isinstance(relation, str):
        return {}
    found = next((form for form in FORMS.get(relation, ()) if statistic in form.statistics), None)
    if found is None:
        return {}
    cls, defaults = found.statistics[statistic], dict[str, Any]()
    if found.cadence == "slot":
        defaults |= {"unit": USER_SLOT}
    if found.cadence == "slot" or found.is_hidden:
        defaults |= {"algorithm": found.algorithms[0].name}
    if cls is of.PublicCount:
        defaults |= {"epsilon": 0}
    if cls is of.Variance or (found.is_hidden and cls is of.MeanVariance):
        defaults |= {"grid": GRID}
    return defaults


def form_of(keys: MetricKeys) -> Form:
    """The form of a metric.

    Raises:
        ValueError: its relation lacks the statistic.
    """
    if keys.relation == VALUES and keys.statistic == "mean" and keys.step is None and keys.decay is None:
        return MEAN
    for form in FORMS[keys.relation]:
        if keys.statistic in form.statistics:
            return form
    if keys.relation == VALUES:
        raise ValueError(f"statistic {keys.statistic} is for relation {ADD_REMOVE}; say so, or choose another")
    has = ", ".join((*HIDDEN.statistics, *PER_SLOT))
    raise ValueError(f"relation {ADD_REMOVE} has no statistic {keys.statistic}; it has: {has}")
