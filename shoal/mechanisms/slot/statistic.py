"""Statistics of places and slots: all cells of one slot, once it is over.

Guarantee    epsilon (and delta) for everything that one unit meets: in all cells of all its slots together
Relation     values: two streams differ in the values of one unit; who contributes when, and in which cell, is public
Unit         a user in one slot, or a user in at most S slots; in each slot in at most K cells (allotment.py)
Shares       a slot has 1 / S of epsilon, a cell of it 1 / d with d the most cells that one of its users is in; exact
Mechanism    that of the algorithm, on one cell; cells and slots never share noise
Values       of several coordinates: all of them together have what one would (means/several.py)
Few users    cells with fewer than `min_users` users are not released. That is a courtesy and no part of the guarantee:
             how many users a cell has is public
Proof        docs/proofs/units.md for slots, many-cells.md for cells
Source       Rameshwar et al. (2024); Esfandiari, Mirrokni and Narayanan (2021) for few users
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, NamedTuple

from shoal.mechanisms import check
from shoal.mechanisms.accounts import Site
from shoal.mechanisms.error_bars import COVERAGE, coverage_of, six_digits
from shoal.mechanisms.grid import Grid, grid_of, grids_of
from shoal.mechanisms.groups import Closed, IsHome, Rows, SlotGroups, everywhere
from shoal.mechanisms.parts.by import Best, FewUsers, OfCells
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import PerCell
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Distribution, Mean, Variance
from shoal.mechanisms.slot import algorithms, words
from shoal.mechanisms.slot import allotment as many_cells
from shoal.mechanisms.slot.accounts import Rule, SlotAccounts
from shoal.mechanisms.slot.allotment import Allotment
from shoal.mechanisms.slot.cell import Algorithm, Axis, Cap, CellParameters, Draws, cell_estimate
from shoal.mechanisms.slot.means import several
from shoal.mechanisms.slot.samples import Samples
from shoal.mechanisms.spec import FEW_USERS
from shoal.mechanisms.statistic import LEAST_EPSILON, Bounder, Contribution, Estimate, OneByOne, OnGrid

Members = dict[str, list[Any]]  # pseudonym -> grid indices, or lists of them, in the order of arrival
ROWS = 200  # contributions that are taken in between two yields
NOTHING = cell_estimate(None, None, None, None, 0, None, "none")
NOBODY = Allotment({}, {}, {}, 0, 0, None, 0.0, {})


class CellResult(NamedTuple):
    """The release of one cell."""

    cell: str
    estimate: Estimate
    users: int  # that count
    dropped: int  # samples of users who are in too many cells, and do not count in this one
    epsilon: Fraction  # of this cell
    degradation: float | None  # worst error of the slot's cells, in what it was with everybody in all of theirs

    @property
    def published(self) -> Estimate:
        """The estimate, with the other fields of its release."""
        details = {
            "mechanism": self.estimate.details["mechanism"],
            "cell_epsilon": float(self.epsilon),
            "users": self.users,
            "dropped": self.dropped,
            "error": self.estimate.details["error"],
            "degradation": self.degradation,
        }
        return replace(self.estimate, details=details)


@dataclass(frozen=True, kw_only=True)
class Slotted(OnGrid):
    """All public parameters of a statistic of places and slots."""

    statistic: type[Mean | Variance | Distribution]
    algorithm: str = "best"
    grid: Grid
    epsilon: Fraction  # of a unit in all its slots and cells
    delta: Fraction = Fraction(0)
    max_contributions: int = 1  # of a unit in a cell
    max_slots: int = 1  # S
    max_groups: int = 1  # K
    splits: bool = False  # each cell has 1 / K, and bound lets nobody into more; else users are left out of cells
    cap: Cap = "optimal"
    spread_share: Fraction | None = None
    prior: bool = False  # few-users finds where to clip
    failure: Fraction = Fraction(1, 1000)
    sigma: Fraction | None = None
    min_users: int = 1
    bins: int = 64
    quantiles: tuple[Fraction, ...] = ()
    clamps: bool = True
    axes: tuple[Axis, ...] = ()  # of several coordinates
    coverage: float = COVERAGE  # of each noise interval
    _algorithm: Algorithm = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check.positive(epsilon=self.epsilon, max_slots=self.max_slots, max_groups=self.max_groups)
        if self.epsilon / self.max_slots / self.max_groups < LEAST_EPSILON:
            raise ValueError(
                f"epsilon must be at least {LEAST_EPSILON} for each cell: below it noise is beyond all numbers"
            )
        if self.statistic is Variance:
            _ = self.grid.squares  # what it refuses, it refuses now
        name = algorithms.WITH_PRIOR if self.prior else self.algorithm
        if self.axes:
            self._check_axes(name)
            algorithm = algorithms.MEANS_OF_VALUES[name]
        else:
            algorithm = algorithms.algorithm_of(self.statistic, name)
        object.__setattr__(self, "_algorithm", algorithm)

    def _check_axes(self, name: str) -> None:
        if self.statistic is not Mean or name not in algorithms.MEANS_OF_VALUES:
            raise ValueError(f"several coordinates are not for {name} of a {self.statistic.name} per slot")
        if len({grid.steps for grid in self.grids}) > 1:
            raise ValueError("several coordinates have grids of as many steps: one draw of noise is for all")

    # ---------------------------------------------------------------- of a metric's parts

    apart: ClassVar[bool] = True
    shared: ClassVar[bool] = True

    clauses = staticmethod(words.clauses)

    @classmethod
    def of(cls, metric: Metric) -> "Slotted":
        what, by = expect(metric.of, Mean, Variance, Distribution), expect(metric.by, OfCells)
        limits = expect(metric.hides.limits, PerCell)
        bins: dict[str, Any] = (
            {"bins": what.bins, "quantiles": what.quantiles} if isinstance(what, Distribution) else {}
        )
        axes = tuple((grid, by.sigma(at)) for at, grid in enumerate(grids_of(what.values)))
        return cls(
            statistic=type(what),
            algorithm=by.name,
            grid=grid_of(what.values),
            epsilon=metric.budget.epsilon,
            delta=metric.budget.delta,
            max_contributions=limits.samples,
            max_slots=limits.slots,
            max_groups=limits.cells,
            splits=limits.across == "split",
            cap=by.cap,
            spread_share=by.spread_share if isinstance(by, Best) else None,
            prior=isinstance(by, Best) and by.prior is not None,
            failure=_failure(by),
            sigma=by.sigma(0),
            min_users=metric.per.min_units,
            clamps=what.clamp,
            axes=axes if len(axes) > 1 else (),
            coverage=coverage_of(by.bars.simultaneous, _numbers(what)),
            **bins,
        )

    @staticmethod
    def accounts(metric: Metric, bounder: Bounder, site: Site) -> SlotAccounts:
        limits = expect(metric.hides.limits, PerCell)
        rule = Rule(
            max_contributions=limits.samples,
            slot=metric.every,
            unit=metric.unit.length,
            max_slots=limits.slots,
            max_groups=limits.cells,
            splits=limits.across == "split",
            coordinates=len(metric.fields.names) if metric.fields else 1,
        )
        return SlotAccounts(rule, site)

    # ---------------------------------------------------------------- what it is

    @property
    def grids(self) -> tuple[Grid, ...]:
        return tuple(grid for grid, _ in self.axes) or (self.grid,)

    @property
    def packing(self) -> Samples | None:
        return Samples(len(self.axes)) if self.axes else None

    def bounder(self) -> OneByOne:
        return OneByOne(self.max_contributions)

    def in_groups(self, key: bytes, is_home: IsHome = everywhere) -> SlotGroups:
        return SlotGroups(partial(self._close, key))

    @property
    def slot_epsilon(self) -> Fraction:
        """The epsilon of one slot."""
        return self.epsilon / self.max_slots

    @property
    def error_epsilon(self) -> Fraction:
        """The slot's epsilon as the worst error of a cell goes by it: with several coordinates each has more noise."""
        apart = self.algorithm != FEW_USERS and self.axes
        return several.of_one(self.parameters).lone_epsilon if apart else self.slot_epsilon

    @property
    def parameters(self) -> CellParameters:
        """The parameters of a cell that has all of a slot's epsilon."""
        takes_all = self.algorithm == "baseline" and not isinstance(self.cap, int)
        return CellParameters(
            grid=self.grid, epsilon=self.slot_epsilon, delta=self.delta / self.max_slots,
            cap=self.max_contributions * self.max_slots if takes_all else self.cap,
            spread_share=self.spread_share, failure=self.failure, sigma=self.sigma, bins=self.bins,
            quantiles=self.quantiles, clamps=self.clamps,
            axes=self.axes, coverage=self.coverage,
        )  # fmt: skip

    def _close(self, key: bytes, slot: int, rows: Rows, after: str | None) -> Iterator[Closed | None]:
        """The cells of a slot, behind `after`; it is computed as a whole, from the contributions of all rows."""
        contributions = [contribution for _, those in rows for contribution in those]
        yield None
        for release in self.cells(key, slot, contributions, after):
            if release is None:
                yield None
            else:
                yield Closed(release.cell, release.published, is_part=True)

    def cells(
        self, key: bytes, slot: int, contributions: Iterable[Contribution], after: str | None = None
    ) -> Iterator[CellResult | None]:
        """The releases of a slot in the order of cells; those up to `after` were made before.

        None is given now and then, while nothing is ready: for a caller who has other things to do, too.
        """
        cells = yield from gather(contributions)
        if not cells:
            return
        yield None
        allotment = yield from self._allot(cells)
        for cell in sorted(cells):
            if after is None or cell > after:
                yield self._cell(key, slot, cell, cells[cell], allotment)

    def _allot(self, cells: Mapping[str, Members]) -> many_cells.Steps[Allotment]:
        """The allotment of users to cells; a cell with too few users to be released has no part of epsilon."""
        counts = {
            cell: {user: len(samples) for user, samples in users.items()}
            for cell, users in cells.items()
            if len(users) >= self.min_users
        }
        if not counts:
            return NOBODY
        share = many_cells.split if self.splits else many_cells.chop
        error = algorithms.worst_error(self.statistic)
        return (yield from share(counts, self.max_groups, self.error_epsilon, error))

    def _cell(self, key: bytes, slot: int, cell: str, members: Members, allotment: Allotment) -> CellResult:
        out = allotment.left_out.get(cell, frozenset())
        users = [samples for user, samples in members.items() if user not in out]
        dropped = allotment.dropped.get(cell, 0)
        degradation = None if self.splits or not allotment.errors else six_digits(allotment.degradation)
        if len(users) < max(1, self.min_users):
            return CellResult(cell, NOTHING, len(users), dropped, Fraction(0), degradation)
        divisor = allotment.divisors[cell]
        whole = self.parameters
        part = replace(whole, epsilon=whole.epsilon / divisor, delta=whole.delta / divisor, dropped=dropped)
        estimate = self._algorithm.release(users, part, Draws(key, cell.encode(), slot))
        return CellResult(cell, estimate, len(users), dropped, part.epsilon, degradation)


def gather(contributions: Iterable[Contribution]) -> Generator[None, None, dict[str, Members]]:
    """The samples of each cell by user, from contributions in canonical order, however these were cut into pieces.

    >>> rows = [Contribution(0, "a", 1, 0, 2, {"x": [5], "y": [6]}), Contribution(0, "a", 3, 0, 1, {"x": [7]})]
    >>> many_cells.result_of(gather(rows))
    {'x': {'a': [5, 7]}, 'y': {'a': [6]}}
    """
    cells: dict[str, Members] = {}
    for count, row in enumerate(contributions):
        if count % ROWS == ROWS - 1:
            yield
        pseudonym = row.pseudonym
        for cell, samples in row.total.items():
            members = cells.get(cell)
            if members is None:
                members = cells[cell] = {}
            if pseudonym in members:
                members[pseudonym].extend(samples)
            else:
                members[pseudonym] = samples.copy()
    return cells


def _failure(by: OfCells) -> Fraction:
    """The probability that a bound fails, less where those of few users are to hold for several releases together."""
    if not isinstance(by, FewUsers) or by.bars.simultaneous is None:
        return by.bars.failure
    return min(by.bars.failure, Fraction(1, 20) / by.bars.simultaneous)


def _numbers(what: Mean | Variance | Distribution) -> int:
    """The numbers of a release that have an interval by noise: of a distribution those of cdf and histogram."""
    if isinstance(what, Mean):
        return what.values.count
    return 2 if isinstance(what, Variance) else 2 * what.bins - 1
