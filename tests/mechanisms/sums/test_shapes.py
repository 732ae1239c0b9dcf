"""What the digest of a metric has of its decayed sum: texts that are registered, whatever the code calls things."""

from fractions import Fraction
from inspect import isabstract

import pytest

from shoal.mechanisms.sums.decayed import DecayedSteps
from shoal.mechanisms.sums.exponentials import Exponentials
from shoal.mechanisms.sums.forward import ForwardSum
from shoal.mechanisms.sums.gaussian_window import RootWindow
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
from shoal.mechanisms.sums.sums import DecayedSum
from shoal.mechanisms.sums.table import TableSum
from shoal.mechanisms.sums.weights import Weights
from shoal.mechanisms.sums.window import WindowSum
from tests.mechanisms.mechanism_cases import classes
from tests.support.cover import in_a_loop

HALF, PER_STEP = Fraction(1, 2), LaplaceSteps(3, Fraction(1, 2))
SUMS: dict[str, DecayedSum] = {
    "WindowSum(length=6, steps=LaplaceSteps(width=3, epsilon=Fraction(1, 2)))": WindowSum(6, PER_STEP),
    "WindowSum(length=6, steps=BlueSteps(width=3, epsilon=Fraction(1, 2), arity=4, height=2))": WindowSum(
        6, BlueSteps(3, HALF, 4, 2)
    ),
    "WindowSum(length=6, steps=HatSteps(width=3, epsilon=Fraction(1, 2), ratios=(9,), segment=256))": WindowSum(
        6, HatSteps(3, HALF, (9,))
    ),
    "DecayedSteps(decay=Exponentials(weights=(1,), weight_bits=0, factors=(39614081257132168796771975168,)), "
    "steps=LaplaceSteps(width=3, epsilon=Fraction(1, 2)))": DecayedSteps(Exponentials.exponential(HALF), PER_STEP),
    "TableSum(weights=Weights(parts=(4, 2, 1), denominator=4), steps=LaplaceSteps(width=3, epsilon=Fraction(1, 2)))": (
        TableSum(Weights.of([Fraction(1), HALF, Fraction(1, 4)]), PER_STEP)
    ),
    "ForwardSum(exponent=Fraction(2, 1), steps=LaplaceSteps(width=3, epsilon=Fraction(1, 2)))": ForwardSum(
        Powers(Fraction(2)), PER_STEP
    ),
    "ForwardSum(exponent=Fraction(1, 2), steps=GrowingSteps(width=3, epsilon=Fraction(1, 2), horizon=60))": ForwardSum(
        Powers(HALF), GrowingSteps(3, HALF, 60)
    ),
    "TableWindows(width=3, epsilon=Fraction(1, 2), weights=Weights(parts=(2, 1), denominator=2), "
    "error=Fraction(1, 5))": (TableWindows(3, HALF, Weights.of([Fraction(1), HALF]), Fraction(1, 5))),
    "RootWindow(width=3, epsilon=Fraction(1, 2), delta=Fraction(1, 1000), length=6)": RootWindow(
        3, HALF, Fraction(1, 1000), 6
    ),
    "RunningSum(width=3, epsilon=Fraction(1, 2), horizon=None)": RunningSum(3, HALF),
    "RunningSum(width=3, epsilon=Fraction(2, 1), horizon=60)": RunningSum(3, Fraction(2), 60),
    "DyadicWindow(width=3, epsilon=Fraction(1, 2), length=6)": DyadicWindow(3, HALF, 6),
    "AllWindowSum(width=3, epsilon=Fraction(1, 2), exponent=Fraction(5, 4))": AllWindowSum(3, HALF),
    "ExponentialSum(width=3, epsilon=Fraction(1, 2), alpha=Fraction(4, 5))": ExponentialSum(3, HALF, Fraction(4, 5)),
    "PolynomialSum(width=3, epsilon=Fraction(1, 2), exponent=Fraction(3, 2), error=Fraction(1, 5), horizon=1000)": (
        PolynomialSum(3, HALF, Fraction(3, 2), Fraction(1, 5), 1000)
    ),
}


@in_a_loop
@pytest.mark.parametrize("text", SUMS)
def test_the_text_of_a_sum_is_what_ledgers_have(text):
    assert SUMS[text].shape() == text


def test_every_sum_and_every_noise_of_steps_is_here():
    used = {type(one) for one in SUMS.values()} | {type(getattr(one, "steps", None)) for one in SUMS.values()}
    spelling = {kind for kind in classes() if hasattr(kind, "shape") and hasattr(kind, "column")}
    assert {kind for kind in spelling if not isabstract(kind) and not getattr(kind, "_is_protocol", False)} <= used
