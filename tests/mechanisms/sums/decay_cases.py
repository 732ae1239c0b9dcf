"""What the tests of decayed sums share: small sums of every class, and the linear map that each of them really is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from inspect import isabstract
from typing import Any, NamedTuple

import orjson
import pytest

from shoal.mechanisms.sums.decayed import DecayedSteps
from shoal.mechanisms.sums.exponentials import Exponentials
from shoal.mechanisms.sums.forward import ForwardSum
from shoal.mechanisms.sums.patent.all_window_sum import AllWindowSum
from shoal.mechanisms.sums.patent.exponential_sum import ExponentialSum
from shoal.mechanisms.sums.patent.polynomial_sum import PolynomialSum
from shoal.mechanisms.sums.patent.table_windows import TableWindows
from shoal.mechanisms.sums.patent.window_sum import DyadicWindow
from shoal.mechanisms.sums.powers import Powers
from shoal.mechanisms.sums.running import RunningSum
from shoal.mechanisms.sums.steps.blue import BlueSteps
from shoal.mechanisms.sums.steps.growing import GrowingSteps
from shoal.mechanisms.sums.steps.hats import HatSteps
from shoal.mechanisms.sums.steps.laplace import LaplaceSteps
from shoal.mechanisms.sums.sums import DecayedSum, Summer
from shoal.mechanisms.sums.table import TableSum
from shoal.mechanisms.sums.weights import Weights
from shoal.mechanisms.sums.window import WindowSum
from tests.mechanisms.counters.counter_cases import Injected, Name
from tests.mechanisms.mechanism_cases import classes, epoch_key
from tests.support.cover import FULL

Weight = Callable[[int], float]  # age -> what a step of this age weighs


class Case(NamedTuple):
    """A decayed sum, how many steps reach over its blocks' borders, and the weights that it promises."""

    name: str
    make: Callable[[int, Fraction], DecayedSum]
    length: int
    weight: Weight
    tolerance: float = 1e-9  # relative, of the weights
    stated: float = 1e-5  # relative, how near the variance stated is
    spends_all: bool = True  # a unit may meet all of epsilon; the infinite tree keeps some for heights not there
    power: float | None = None  # of forward decay, whose weights are no function of age

    def weighs(self, step: int, t: int) -> float:
        """What a step weighs at step t."""
        return self.weight(t - step) if self.power is None else (step / t) ** self.power

    def sums(self, width: int = 1, epsilon: Fraction | int = 1) -> Any:
        return self.make(width, Fraction(epsilon))


def window(length: int) -> Weight:
    return lambda age: float(age < length)


def blue_window(length: int, arity: int, height: int) -> Case:
    def make(width: int, epsilon: Fraction) -> DecayedSum:
        return WindowSum(length, BlueSteps(width, epsilon, arity, height))

    return Case(f"window-{length}-blue-{arity}-{height}", make, 3 * max(length, arity**height) + 2, window(length))


def hat_window(length: int, ratios: tuple[int, ...]) -> Case:
    def make(width: int, epsilon: Fraction) -> DecayedSum:
        return WindowSum(length, HatSteps(width, epsilon, ratios, segment=1))

    return Case(f"window-{length}-hats-{ratios}", make, 34, window(length), stated=0.12)


def step_window(length: int) -> Case:
    return Case(
        f"window-{length}-per-step",
        lambda width, epsilon: WindowSum(length, LaplaceSteps(width, epsilon)),
        3 * length + 2,
        window(length),
    )


def dyadic_window(length: int) -> Case:
    return Case(
        f"window-{length}-patent",
        lambda width, epsilon: DyadicWindow(width, epsilon, length),
        3 * length + 2,
        window(length),
    )


ALPHA = Fraction(4, 5)
SQUARE = Exponentials.polynomial(Fraction(2), 1000)
BETA = Fraction(1, 2)  # of the patent's polynomial windows: a step of age n weighs 2**-j, the next below (n + 1)**-c
LISTED = Weights.of([Fraction(part, 12) for part in (12, 9, 6, 4, 3, 3, 2)])
FEW = Weights.of([Fraction(2, 3), Fraction(1, 7)])


def forward(name: str, exponent: Fraction, steps: Callable[[int, Fraction], Any], length: int) -> Case:
    return Case(
        f"forward-{name}",
        lambda width, epsilon: ForwardSum(Powers(exponent), steps(width, epsilon)),
        length,
        lambda age: 1.0,
        power=float(exponent),
    )


def flat(age: int) -> float:
    """What a step weighs in PolynomialSum with exponent 2."""
    weight, least = 1.0, (age + 1.0) ** -2
    while weight > least * (1 + 1e-12):
        weight /= 2
    return weight


CASES: dict[type, list[Case]] = {
    WindowSum: [
        step_window(1),
        step_window(5),
        blue_window(4, 2, 2),
        blue_window(7, 3, 1),
        blue_window(5, 3, 2),
        blue_window(9, 2, 2),
        blue_window(11, 2, 1),
        hat_window(9, (3, 2)),
        hat_window(20, (4,)),
    ],
    DyadicWindow: [dyadic_window(length) for length in (1, 2, 3, 5, 8, 12)],
    DecayedSteps: [
        Case(
            "exponential-per-step",
            lambda width, epsilon: DecayedSteps(Exponentials.exponential(ALPHA), LaplaceSteps(width, epsilon)),
            20,
            lambda age: float(ALPHA) ** age,
        ),
        Case(
            "exponential-blue",
            lambda width, epsilon: DecayedSteps(Exponentials.exponential(ALPHA), BlueSteps(width, epsilon, 3, 2)),
            30,
            lambda age: float(ALPHA) ** age,
        ),
        Case(
            "exponential-hats",
            lambda width, epsilon: DecayedSteps(
                Exponentials.exponential(ALPHA), HatSteps(width, epsilon, (3, 2), segment=1)
            ),
            30,
            lambda age: float(ALPHA) ** age,
            stated=0.1,
        ),
        Case(
            "polynomial-per-step",
            lambda width, epsilon: DecayedSteps(SQUARE, LaplaceSteps(width, epsilon)),
            20,
            lambda age: (age + 1.0) ** -2,
            1e-6,
        ),
        Case(
            "polynomial-blue",
            lambda width, epsilon: DecayedSteps(SQUARE, BlueSteps(width, epsilon, 2, 2)),
            14,
            lambda age: (age + 1.0) ** -2,
            1e-6,
        ),
    ],
    ForwardSum: [
        forward("per-step", Fraction(2), LaplaceSteps, 20),
        forward("blue", Fraction(1, 2), GrowingSteps, 25),
        forward("blue-horizon", Fraction(3), lambda width, epsilon: GrowingSteps(width, epsilon, 6), 20),
    ],
    ExponentialSum: [
        Case(
            "exponential-patent",
            lambda width, epsilon: ExponentialSum(width, epsilon, ALPHA),
            40,
            lambda age: float(ALPHA) ** age,
        ),
        Case(
            "exponential-patent-fast",
            lambda width, epsilon: ExponentialSum(width, epsilon, Fraction(1, 1000)),
            20,
            lambda age: 1e-3**age,
            1e-2,  # 1 / 1000 is not a fraction of 2**40, and its powers are soon below it
        ),
    ],
    PolynomialSum: [
        Case(
            "polynomial-patent",
            lambda width, epsilon: PolynomialSum(width, epsilon, Fraction(2), BETA, horizon=8),
            28,
            lambda age: flat(age) if age < 11 else 0.0,
        ),
    ],
    TableSum: [
        Case(
            "table-per-step",
            lambda width, epsilon: TableSum(LISTED, LaplaceSteps(width, epsilon)),
            16,
            LISTED.weight,
        ),
        Case(
            "table-blue",
            lambda width, epsilon: TableSum(LISTED, BlueSteps(width, epsilon, 2, 2)),
            18,
            LISTED.weight,
        ),
        Case(
            "table-blue-of-few-weights",
            lambda width, epsilon: TableSum(FEW, BlueSteps(width, epsilon, 3, 2)),
            22,
            FEW.weight,
        ),
    ],
    TableWindows: [
        Case(
            "table-patent",
            lambda width, epsilon: TableWindows(width, epsilon, LISTED, BETA),
            24,
            lambda age: (1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125)[age] if age < 7 else 0.0,
        ),
    ],
    AllWindowSum: [
        Case("all-windows-patent", AllWindowSum, 20, lambda age: 1.0, spends_all=False),
    ],
    RunningSum: [
        Case("running", RunningSum, 25, lambda age: 1.0),
        Case("running-horizon", lambda width, epsilon: RunningSum(width, epsilon, 6), 20, lambda age: 1.0),
    ],
}
ALL = [case for cases in CASES.values() for case in cases]
every_case = pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
# Long cases with a shorter case of their class and kind of steps. Laws with a run for each draw try them with full
# effort only.
LONGER = {
    "window-5-blue-3-2", "window-9-blue-2-2", "window-11-blue-2-1", "window-9-hats-(3, 2)", "window-8-patent",
    "window-12-patent", "exponential-hats", "forward-blue-horizon", "running-horizon", "table-blue-of-few-weights",
}  # fmt: skip
assert LONGER < {case.name for case in ALL}
SHORTER = [case for case in ALL if FULL or case.name not in LONGER]
some_cases = pytest.mark.parametrize("case", SHORTER, ids=[case.name for case in SHORTER])


def sum_classes() -> set[type]:
    """Every class of decayed sums of the package."""
    return {cls for cls in classes() if hasattr(cls, "summer") and hasattr(cls, "column") and not isabstract(cls)}


def release(summer: Summer, x: int) -> tuple[int, ...]:
    """What a step publishes: its release, and noisy nodes where the sum has some."""
    value = summer.add(x)
    return (value, *getattr(summer, "released", ()))


Rests = Mapping[int, int]  # how many steps are skipped after so many others
NEVER: Rests = {}


def outputs(case: Case, steps: Sequence[int], draws: Mapping[Name, int], rests: Rests = NEVER) -> list[tuple[int, ...]]:
    """All that is published about these steps, if the draws are these, and 0 where none is named."""
    injected = Injected()
    injected.values = dict(draws)
    with injected.instead():
        return [published for _, published in run(case.sums().summer(epoch_key), steps, rests)]


def places(case: Case, rests: Rests) -> list[int]:
    """The numbers of a case's steps, which a rest has too."""
    return [t for t, _ in run(case.sums().summer(epoch_key), [0] * case.length, rests)]


def run(summer: Summer, steps: Sequence[int], rests: Rests) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The number of each step, and what it publishes."""
    for count, x in enumerate(steps):
        if count in rests:
            summer.skip(rests[count])
        published = release(summer, x)
        yield summer.t, published


def name(number: int, place: int) -> Name:
    """Of a draw."""
    return epoch_key(number), place


def moved(case: Case, draws: Mapping[Name, int], change: Mapping[int, int]) -> dict[Name, int]:
    """z + R d."""
    sums, found = case.sums(), dict(draws)
    for step, d in change.items():
        for node in sums.column(step):
            at = name(node.subkey, node.place)
            found[at] = found.get(at, 0) + node.coefficient * d
    return found


def losses(case: Case, width: int, epsilon: Fraction) -> list[dict[tuple[int, int], Fraction]]:
    """For each step, what a change of it by 1 costs at each draw, signs left out: R is not negative."""
    sums = case.sums(width, epsilon)
    return [
        {(node.subkey, node.place): node.coefficient / node.scale for node in sums.column(step)}
        for step in range(1, case.length + 1)
    ]


class Linear(NamedTuple):
    """What a sum's noise is: the coefficient of each draw in each release, in grid steps, and the draw's scale."""

    scales: dict[Name, Fraction]
    coefficients: dict[Name, list[float]]


_UNIT = 10**40


def linear(case: Case, rests: Rests = NEVER) -> Linear:
    """The map, found by one draw at a time."""
    injected, length = Injected(), case.length
    with injected.instead():
        places(case, rests)
    scales = {at: next(iter(injected.scales[at[0]])) for at in injected.asked}
    denominator = case.sums().denominator * _UNIT
    found = {}
    for at in injected.asked:
        found[at] = [row[0] / denominator for row in outputs(case, [0] * length, {at: _UNIT}, rests)]
    return Linear(scales, found)


def copied(case: Case, summer: Summer, kept: Mapping[int, int]) -> Summer:
    """A fresh summer restored from what the other would have written down."""
    fresh: Summer = case.sums(1 << 20).summer(epoch_key)
    fresh.restore(orjson.loads(orjson.dumps(summer.head())), dict(kept))
    return fresh
