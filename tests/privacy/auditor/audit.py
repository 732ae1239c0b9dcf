"""One configuration audited: the largest privacy loss between any two of its worlds."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any
from unittest.mock import patch

import numpy as np

from shoal.mechanisms.continual_mean import statistic
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.privacy.zcdp import largest_rho
from shoal.mechanisms.selection import first_crossing
from shoal.stream.topic import TopicPlan
from tests.privacy.auditor.choices import concentrated, told
from tests.privacy.auditor.families.epochs import EpochsCase
from tests.privacy.auditor.families.found import FoundCase
from tests.privacy.auditor.families.presence import PresenceCase
from tests.privacy.auditor.program import Numbers, Unsolved, least_loss
from tests.privacy.auditor.streams import Case, Event
from tests.privacy.auditor.unknowns import Unknowns
from tests.privacy.auditor.worlds import Seen, file_run, worker_run
from tests.privacy.hosted import compiled

LARGE = 1 << 44  # an unknown's value when its coefficients are read off
FINE = 40  # binary places of the steps in which Gaussian draws of the square-root counter are, which it rounds
ROOM = 1e-4  # what the arithmetic of floats may add to a loss
EVERY = 3  # of the cases over files, so many go through a worker too
WORLDS = 3  # at random, besides the two ends
PARTS = 60  # of a unit's weight, in place of 65536: the law of when a key is shown is summed up over them


@dataclass
class Audited:
    """What was found; `ratio` is the largest loss over the epsilon declared."""

    label: str
    seed: int
    ratio: float = 0.0
    unknowns: int = 0
    choices: int = 0
    releases: int = 0
    woke_late: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether the guarantee is broken."""
        return bool(self.problems) or self.ratio > 1 + ROOM

    def told(self, case: Case) -> dict[str, Any]:
        """All of it, with the configuration."""
        return asdict(self) | {"metric": case.metric, "delta": str(case.delta), "events": len(case.events)}


def audit(case: Case, seed: int) -> Audited:
    """Run the worlds, and compare each with the two ends and some with one another.

    Raises:
        TooManyUnknowns: it draws too much noise to be audited.
        ValueError: the configuration is refused.
    """
    return _audit_found(case, seed) if isinstance(case, FoundCase) else _Audit(case, seed).run()


@contextmanager
def gaussian_means() -> Iterator[None]:
    """Means with a delta have Gaussian noise, also where Laplace noise would be less: so that few users are enough."""

    def noise_of(metric: Metric) -> Any:
        return statistic._Noise(statistic.GAUSSIAN, largest_rho(metric.budget.epsilon, metric.budget.delta))

    with patch.object(statistic, "_noise_of", noise_of):
        yield


def _audit_found(case: FoundCase, seed: int) -> Audited:
    audited = Audited(case.label, seed)
    with patch.object(first_crossing, "PARTS", PARTS):
        for found, epsilon, delta, problems in case.audited(compiled(case.config()), WORLDS):
            audited.problems += problems
            audited.ratio = max(audited.ratio, epsilon / case.epsilon)
            audited.choices += 1
            audited.unknowns += found.unknowns
            audited.releases += found.releases
            if delta > float(case.delta) * (1 + 1e-9):
                audited.problems.append(f"keys that one alone has are shown with {delta}, and delta is {case.delta}")
    return audited


class _Audit:
    """One audit under way."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case, self.seed = case, seed
        with gaussian_means() if case.is_gaussian else nullcontext():
            self.plan: TopicPlan = compiled(case.config(), case.sources)
        self.unknowns = Unknowns()
        self.found = Audited(case.label, seed)

    def run(self) -> Audited:
        worlds = self.case.worlds(self.seed, WORLDS)
        seen = [self._run(world, whole=True) for world in worlds]
        over_files = self.case.sources == 1 and not isinstance(self.case, PresenceCase | EpochsCase)
        if over_files and self.seed % EVERY == 0:  # a worker's counters, messages and lead, too
            all_zero = Unknowns(most=inf)
            around = [worker_run(self.plan, world, all_zero, self.seed, whole=True).pattern for world in worlds[:2]]
            self._compare("what is seen of a worker", around)
        self._compare("what is seen", [one.pattern for one in seen])
        coefficients = self._coefficients(worlds[0], seen[0])
        for first, second in self.case.pairs(len(seen)):
            self._compare_pair(seen[first], seen[second], coefficients)
        self.found.unknowns, self.found.choices = len(self.unknowns.laws), len(seen[0].choices)
        self.found.releases, self.found.woke_late = seen[0].releases, seen[0].woke_late
        return self.found

    def _run(self, world: list[Event], *, whole: bool) -> Seen:
        if isinstance(self.case, PresenceCase):
            return self.case.run(self.plan, world, self.unknowns)
        if isinstance(self.case, EpochsCase):
            return self.case.run(world, self.unknowns, self.seed, whole=whole)
        run = file_run if self.case.sources == 1 else worker_run
        return run(self.plan, world, self.unknowns, self.seed, whole=whole)

    def _compare(self, what: str, patterns: list[Any]) -> None:
        for number, pattern in enumerate(patterns[1:], 1):
            if pattern != patterns[0]:
                self.found.problems.append(f"{what} differs between the worlds 0 and {number}")

    def _coefficients(self, world: list[Event], base: Seen) -> Numbers:
        """Of each release's numbers in each unknown; the world is one of them all."""
        columns = []
        for number, law in enumerate(self.unknowns.laws):
            large = LARGE << FINE if law.gaussian else LARGE
            self.unknowns.given = {number: large}
            seen = self._run(world, whole=False)
            if seen.pattern[0] != base.pattern[0]:
                self.found.problems.append("what must be pattern depends on the noise")
                break
            columns.append((seen.numbers - base.numbers) / large)
        self.unknowns.given = {}
        return np.array(columns).T if columns else np.zeros((len(base.numbers), 0))

    def _compare_pair(self, first: Seen, second: Seen, coefficients: Numbers) -> None:
        if self.found.problems:
            return  # the numbers may not even be as many
        try:
            spent, delta = told(first.choices, second.choices)
            difference = second.numbers - first.numbers
            rho = concentrated(first.choices, second.choices) if self.case.delta else 0.0
            loss = least_loss(coefficients, difference, self.unknowns.laws, self.case.delta, spent, rho)
        except (AssertionError, Unsolved) as error:
            self.found.problems.append(str(error))
            return
        if delta > float(self.case.delta) * (1 + 1e-6):
            self.found.problems.append(f"delta {delta} is more than declared")
        self.found.ratio = max(self.found.ratio, loss / self.case.epsilon)
        for label, epsilon in self.case.charges.items() if isinstance(self.case, EpochsCase) else ():
            rows = [number for number, one in enumerate(first.labels) if one == label]
            alone = least_loss(coefficients[rows], difference[rows], self.unknowns.laws, self.case.delta)
            self.found.ratio = max(self.found.ratio, alone / epsilon)
