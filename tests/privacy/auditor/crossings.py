"""Keys that are found, with their counters: the exact law of when each is shown, and a linear program given that.

A transcript says of each key at which tick it is shown, or that it is not. Whoever comes next may depend on it, in both
worlds by the same rule. Its probability is a product over keys of a sum over rho: by the definition of first crossing,
with the package's thresholds, and with the weights that the package's accounts send. Given a transcript, the package
releases each world's counters, whose noise is unknown: as for any other statistic a linear program finds their loss. It
adds to that of the transcript, for draws that find keys are independent of counters' noise.

What one world alone can show, because it has no key there in the other, is what delta is for. Of all else
p / q * exp(loss) is at most exp(epsilon), and with what is left of the other transcripts' chances likewise: the ratio
that is told is the least epsilon for which, both ways, the excess is no more than that.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from shoal.mechanisms.selection.first_crossing import FirstCrossing
from shoal.mechanisms.statistic import Contribution
from shoal.stream.topic import Metric
from tests.privacy.attended import shown_at
from tests.privacy.auditor.program import Numbers, least_loss
from tests.privacy.auditor.unknowns import Unknowns

LARGE = 1 << 44  # an unknown's value when its coefficients are read off
REST = 30.0  # exp(-30): the chance of a larger rho than those that are summed up
NEVER = -1
Shown = Mapping[str, int]  # of each key the tick, counted from the first, or NEVER
Rows = Mapping[tuple[str, int], list[Contribution]]  # what bound sends, by key and tick
World = Callable[[Shown], Rows]  # all that is sent where keys are shown so


class Found:
    """One metric whose keys are found, in two worlds."""

    def __init__(self, metric: Metric, keys: tuple[str, ...], ticks: int) -> None:
        self.metric, self.keys, self.ticks = metric, keys, ticks
        of: Any = metric.parameters
        self.of, self.selection = of, of.selection
        self._coefficients: dict[tuple[str, int], tuple[Numbers, list[Any]]] = {}
        self.releases = self.unknowns = 0

    def transcripts(self) -> Iterator[Shown]:
        """All of them: those that cannot be have no probability."""
        for ticks in product((*range(self.ticks), NEVER), repeat=len(self.keys)):
            yield dict(zip(self.keys, ticks, strict=True))

    def compared(self, one: World, other: World) -> tuple[float, float, list[str]]:
        """The least epsilon by which each is within what the other one shows, the chance of what one alone does, and
        what is wrong.
        """
        laws: list[tuple[float, float, float]] = []  # of each transcript its probabilities and the counters' loss
        for shown in self.transcripts():
            sent = one(shown), other(shown)
            p, q = (math.prod(self._chance(rows, key, shown) for key in self.keys) for rows in sent)
            laws.append((p, q, self._loss(*sent, shown) if p and q else 0.0))
        totals = [math.fsum(law[world] for law in laws) for world in (0, 1)]
        if any(abs(total - 1) > 1e-9 for total in totals):
            return math.inf, 0.0, [f"the laws of what is shown add up to {totals}"]
        alone = max(math.fsum(law[w] for law in laws if not law[1 - w]) for w in (0, 1))
        return max(_least(laws, alone), _least([(q, p, loss) for p, q, loss in laws], alone)), alone, []

    # ---------------------------------------------------------------- when a key is shown

    def _chance(self, rows: Rows, key: str, shown: Shown) -> float:
        weights = [0] * self.ticks
        for (group, tick), sent in rows.items():
            if group == key:
                weights[tick - self.of.first] += sum(weight_of(row) for row in sent)
        return chance(self.selection, tuple(np.cumsum(weights).tolist()), shown[key])

    # ---------------------------------------------------------------- what is released then

    def _loss(self, one: Rows, other: Rows, shown: Shown) -> float:
        found = [self._released(rows, shown, Unknowns(most=math.inf)) for rows in (one, other)]
        assert found[0].keys() == found[1].keys(), "what is released hangs on more than on when keys are shown"
        loss = 0.0
        for key in self.keys:
            if shown[key] != NEVER:
                coefficients, laws = self._of_noise(key, shown[key])
                loss += least_loss(coefficients, found[1][key] - found[0][key], laws, self.of.delta)
        return loss

    def _released(self, rows: Rows, shown: Shown, unknowns: Unknowns) -> dict[str, Numbers]:
        """Of each key the noisy sides of all its releases."""
        numbers: dict[str, list[float]] = {key: [] for key in self.keys}
        groups: Any = self.metric.groups()
        first = self.of.first
        with unknowns.installed(), shown_at({key: tick for key, tick in shown.items() if tick != NEVER}):
            for tick in range(first, first + self.ticks):
                came = sorted((group, sent) for (group, at), sent in rows.items() if at == tick)
                is_due = groups.due() == tick
                for closed in groups.close(tick, came) if came or is_due else ():
                    if closed is not None and closed.estimate is not None:
                        assert first + shown[closed.group] <= tick, "a key is released before it is shown"
                        noisy = groups.releaser(closed.group).released
                        numbers[closed.group] += [number / self.of.sums.denominator for number in noisy]
        self.releases += sum(map(len, numbers.values()))
        for key, tick in shown.items():
            told = 0 if tick == NEVER else (self.ticks - tick) * len(self.of.sides.noised)
            assert len(numbers[key]) == told, "a key that is shown is released at every tick"
        return {key: np.array(found) for key, found in numbers.items()}

    def _of_noise(self, key: str, tick: int) -> tuple[Numbers, list[Any]]:
        """Coefficients and laws of the draws of a key that is shown at this tick, whatever came: noise is added."""
        if (key, tick) not in self._coefficients:
            unit = self.of.selection.unit
            newcomer = {(key, self.of.first): [Contribution(0, "", 1, 0, 1, _packed(self.of, unit))]}
            shown = dict.fromkeys(self.keys, NEVER) | {key: tick}
            unknowns, columns = Unknowns(), []
            base = self._released(newcomer, shown, unknowns)[key]
            for number in range(len(unknowns.laws)):
                unknowns.given = {number: LARGE}
                columns.append((self._released(newcomer, shown, unknowns)[key] - base) / LARGE)
            self.unknowns += len(columns)
            self._coefficients[key, tick] = np.array(columns).T, unknowns.laws
        return self._coefficients[key, tick]


def _packed(of: Any, weight: int) -> Any:
    return weight if of.packing is None else [weight, 0]


def weight_of(row: Contribution) -> int:
    """What a contribution adds to n."""
    if row.number != 1:
        return 0
    return int(row.total[0] if isinstance(row.total, list) else row.total)


def chance(selection: FirstCrossing, weights: tuple[int, ...], tick: int) -> float:
    """The probability that a key with these weights is shown at this tick, by a draw at each tick."""
    rate = float(selection.epsilon) / selection.unit
    rho = np.arange(math.ceil(REST / rate), dtype=float)
    alive = np.exp(-rate * rho) * -math.expm1(-rate)
    alive[-1] /= -math.expm1(-rate)  # and all that is larger
    for number, n in enumerate(weights):
        shows = (
            np.exp(np.minimum(-rate * (selection.threshold(number + 1) + rho - n), 0.0)) if n else 0.0 * rho
        )  # the gate
        if number == tick:
            return float(np.sum(alive * shows))
        alive = alive * (1 - shows)
    return float(np.sum(alive))


def _least(laws: list[tuple[float, float, float]], alone: float) -> float:
    """The least epsilon with which the first probabilities exceed the second ones by no more than `alone`."""
    room = alone * (1 + 1e-9) + 1e-15

    def excess(epsilon: float) -> float:
        return math.fsum(max(0.0, p - math.exp(epsilon - loss) * q) for p, q, loss in laws)

    # Beyond this nothing but what one alone shows is left.
    low, high = 0.0, max((loss + math.log(p / q) for p, q, loss in laws if p and q), default=0.0)
    if excess(low) <= room:
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) <= room else (middle, high)
    return high
