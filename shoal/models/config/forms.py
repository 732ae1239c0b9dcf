"""Forms of metrics: the keys that a form lacks, its statistics and algorithms, and the rules between its parts."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from shoal.mechanisms.continual_mean import MEANS
from shoal.mechanisms.continual_mean import rules as means
from shoal.mechanisms.linear import rules as sums
from shoal.mechanisms.parts import by, of
from shoal.mechanisms.parts.rules import Rule, names_of
from shoal.mechanisms.slot import rules as slots
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.config.metric_keys import MetricKeys


class Block(NamedTuple):
    """Keys that a form lacks, and the refusal of one that is given: KEY `why``remedy`."""

    keys: tuple[str, ...]
    why: str
    remedy: str = "; remove it"


AT_SLOT_END = "is not for statistics per slot, which are released at its end"
NOT_HIDDEN = f"is not for relation {ADD_REMOVE}"
OF_MEANS = "is for means without a decay"
IN_ALL = "max_contributions limits a unit in all cells and slots together"

NO_VALUES = "does nothing for statistic {statistic}, which has no values"
PRESENCE = Block(("groups", "start", "end", "selection", "clip"), f"is for relation {ADD_REMOVE}")
EXACT = Block(
    ("contribution_cap", "min_users", "spread_share"),
    f"goes by how many there are, which relation {ADD_REMOVE} protects",
)
CELL_LIMITS = Block(("max_slots", "across_cells"), f"is for relation {VALUES}: under {ADD_REMOVE} {IN_ALL}")
SLOTS = Block(("cell", *CELL_LIMITS.keys, *EXACT.keys), "is for statistics per slot", remedy="; add slot, or remove it")
BINS = Block(("bins", "quantiles"), "is for statistic distribution")
WITHOUT_VALUES = Block(("range", "grid", "clamp"), NO_VALUES)
REST = Block(
    ("max_gap",),
    f"is for sums, counts, variances and means with a decay, under relation {VALUES}: only their groups rest",
)
ALGORITHM = Block(("algorithm",), f"is for relation {VALUES}: {ADD_REMOVE} has one of its own")
ASSUMPTIONS = Block(("prior", "sigma"), OF_MEANS)
WITHHELD = Block(("withheld",), OF_MEANS)
CADENCE = Block(("every", "decay", "life"), AT_SLOT_END)
UNCOUNTED = Block(("prior", "sigma", "simultaneous", "withheld"), NOT_HIDDEN)
EVENT_LIMIT = Block(("max_events_per_user",), NOT_HIDDEN)
USERS = Block(("users",), NOT_HIDDEN)
CLIP = Block(("clip",), "is for means and sums of every step: a slot has no earlier values to choose by")

FOR_CELLS = (by.Best, by.Baseline)  # algorithms of statistics per slot other than the mean


class Form(NamedTuple):
    """Class of metrics with the same keys: their statistics, algorithms, missing keys and rules."""

    statistics: Mapping[str, type]  # class of the part `of`, by name in configurations
    algorithms: tuple[type[by.Algorithm], ...]
    what: str  # metrics of this form, in a sentence
    lacks: tuple[Block, ...]
    rules: tuple[Rule, ...]
    is_slotted: bool = False  # whether each release is of one slot
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
            if keys.algorithm in (None, algorithm.name):
                return algorithm
        what = self.what.format(statistic=keys.statistic)
        raise ValueError(f"{keys.algorithm} is not for {what}; use one of: {names_of(allowed)}")

    def refuse_lacking(self, keys: MetricKeys) -> None:
        """Refuse keys that metrics of this form, or of this statistic, lack.

        Raises:
            ValueError: the first of them that is given.
        """
        for block in (*self.lacks, *lacks_of(self.statistics[keys.statistic])):
            refuse(keys, block.keys, block.why.format(statistic=keys.statistic), block.remedy)


def refuse(keys: MetricKeys, names: tuple[str, ...], why: str, remedy: str = "; remove it") -> None:
    """Raise for the first of `names` that is given.

    Raises:
        ValueError: one is given.
    """
    for name in names:
        if getattr(keys, name) is not None:
            raise ValueError(f"{name} {why}{remedy}")


def has_no_values(statistic: type) -> bool:
    """Whether a statistic has no values: a number of samples or users."""
    return issubclass(statistic, of.WithoutValues)


def lacks_of(statistic: type) -> Iterable[Block]:
    """The keys that a statistic lacks under every relation."""
    if has_no_values(statistic):
        yield WITHOUT_VALUES
    if statistic is not of.Distribution:
        yield BINS


def _named(*classes: type[of.Of]) -> dict[str, type]:
    return {cls.name: cls for cls in classes}


SLOTTED = _named(of.Mean, of.Variance, of.Distribution)
MEAN = Form(
    _named(of.Mean),
    MEANS,
    "means without a decay",
    (PRESENCE, SLOTS, REST),
    means.RULES,
)
SUMS = Form(
    _named(of.Mean, of.Sum, of.PublicCount),
    (by.Sharp, by.Patent),
    "a {statistic} of every step",
    (PRESENCE, SLOTS, ASSUMPTIONS, WITHHELD),
    sums.OF_VALUES,
)
VARIANCE = SUMS._replace(statistics=_named(of.Variance))
CELLS = Form(
    SLOTTED,
    (by.Best, by.Baseline, by.ArrayAveraging, by.Levy, by.FixedQuantile, by.EpsilonQuantile, by.FewUsers),
    "a {statistic} per slot",
    (PRESENCE, CADENCE, REST, Block(WITHHELD.keys, f"{OF_MEANS}; a slot says what is dropped")),
    slots.RULES,
    is_slotted=True,
)
HIDDEN = Form(
    _named(of.Mean, of.Sum, of.Count, of.Users, of.Variance, of.Distribution),
    (by.TwoSided,),
    "",
    (ALGORITHM, SLOTS, REST, UNCOUNTED, EVENT_LIMIT),
    sums.OF_PRESENCE,
    is_hidden=True,
)
HIDDEN_CELLS = Form(
    SLOTTED,
    (by.TwoSided,),
    "",
    (
        ALGORITHM,
        Block((*CADENCE.keys, "withheld"), AT_SLOT_END),
        USERS,
        REST,
        UNCOUNTED,
        EVENT_LIMIT,
        CLIP,
        EXACT,
        CELL_LIMITS,
    ),
    sums.OF_SLOTS,
    is_slotted=True,
    is_hidden=True,
)
FORMS: Mapping[str, tuple[Form, ...]] = {VALUES: (CELLS, SUMS, VARIANCE, MEAN), ADD_REMOVE: (HIDDEN_CELLS, HIDDEN)}
ALL = (MEAN, SUMS, CELLS, VARIANCE, HIDDEN, HIDDEN_CELLS)
STATISTICS = tuple(dict.fromkeys(name for form in ALL for name in form.statistics))
ALGORITHMS = tuple(dict.fromkeys(algorithm.name for form in ALL if not form.is_hidden for algorithm in form.algorithms))


def form_of(keys: MetricKeys) -> Form:
    """The form of a metric.

    Raises:
        ValueError: its relation, or a slot, lacks the statistic.
    """
    if keys.relation == VALUES and keys.statistic == of.Mean.name and keys.slot is None and keys.decay is None:
        return MEAN
    for form in FORMS[keys.relation]:
        if form.is_slotted == (keys.slot is not None) and keys.statistic in form.statistics:
            return form
    if keys.slot is not None:
        raise ValueError(
            f"statistic {keys.statistic} has no slots; remove slot, or choose one of: {', '.join(SLOTTED)}"
        )
    if keys.statistic in SLOTTED:
        raise ValueError(f"statistic {keys.statistic} needs a slot, or relation {ADD_REMOVE}; add one of the two")
    raise ValueError(f"statistic {keys.statistic} is for relation {ADD_REMOVE}; say so, or choose another")
