"""Every mechanism for every decay that is measured, and which of its releases are looked at."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from benchmarks.decay import textbook
from benchmarks.decay.measuring import Draws, Looking, Steps, Window
from shoal.mechanisms.counters.tree_row import LARGEST
from shoal.mechanisms.sums import decays
from shoal.mechanisms.sums.decayed import DecayedSteps
from shoal.mechanisms.sums.decays import AllWindows, Exponential, Polynomial
from shoal.mechanisms.sums.exponentials import Exponentials
from shoal.mechanisms.sums.gaussian_window import RootWindow
from shoal.mechanisms.sums.steps.blue import BlueSteps
from shoal.mechanisms.sums.steps.hat_variance import best_ratios
from shoal.mechanisms.sums.steps.hats import HatSteps
from shoal.mechanisms.sums.steps.laplace import LaplaceSteps
from shoal.mechanisms.sums.steps.steps import NoisedSteps
from shoal.mechanisms.sums.sums import DecayedSum
from shoal.mechanisms.sums.window import WindowSum

WIDTH = 1 << 20  # grid steps that a unit is worth: noise is then as good as continuous
EPSILON = Fraction(1)
DELTA = Fraction(1, 10**6)  # of the square root
DELTAS = [Fraction(1, 10**9), DELTA, Fraction(1, 10**3)]
STEPS, PATENT, BLUE, HATS, ROOT = "per-step", "patent", "blue", "hats", "square-root"  # as releases call them
SHARP, LOOSE = "sharp", "sharp with delta"

WINDOW, EXPONENTIAL, POLYNOMIAL, ALL = "window", "exponential", "polynomial", "all-windows"
LENGTHS = [1 << w for w in (6, 8, 10, 12, 14, 16)]
FORGETTING = [10, 100, 1000, 10_000]  # 1 / (1 - alpha)
EXPONENTS = [Fraction(101, 100), Fraction(3, 2), Fraction(2)]
ENDS = [(100, 10), (1000, 100), (1000, 1000), (10_000, 1000)]  # and lengths
PHASES = 1 << 16  # of a formula; more are sampled


@dataclass(frozen=True)
class Contender:
    """A row of the tables."""

    family: str
    at: str  # its parameter, as text
    x: float  # and as a number
    mechanism: str
    detail: str
    sums: DecayedSum
    looking: Looking
    textbook: float | None = None  # mean variance
    target: float | None = None  # of the decay's sharp mechanism
    sharp: str = ""  # whether it is the one

    @property
    def name(self) -> str:
        """Of its draws' keys."""
        return f"{self.family} {self.at} {self.mechanism}"


def contenders(*, quick: bool) -> Iterator[Contender]:
    """All of them, or the cheap ones."""
    for length in LENGTHS[:2] if quick else LENGTHS:
        yield from windows(length)
    for count in FORGETTING[:2] if quick else FORGETTING:
        yield from exponentials(count)
    for exponent in EXPONENTS[1:2] if quick else EXPONENTS:
        yield from polynomials(exponent)
    for end, length in ENDS[:2] if quick else ENDS:
        yield from all_windows(end, length)


# ---------------------------------------------------------------- windows


def windows(length: int) -> Iterator[Contender]:
    """Of one length, a power of two."""
    decay = decays.Window(length)
    pure, loose = decay.sharp(WIDTH, EPSILON), decay.sharp(WIDTH, EPSILON, DELTA)
    trees, hats = window_trees(length), HatSteps(WIDTH, EPSILON, best_ratios(length, ends=2))
    row = f"2^{length.bit_length() - 1}"
    made: list[tuple[str, str, DecayedSum, Looking, float | None]] = [
        (STEPS, "", WindowSum(length, LaplaceSteps(WIDTH, EPSILON)), by_steps(length), textbook.window_steps(length)),
        (PATENT, "", decay.patent(WIDTH, EPSILON), by_patent(length), textbook.window_patent(length)),
        (
            BLUE,
            shape(trees),
            WindowSum(length, trees),
            sliding(length, trees.size, trees.arity, 1 + 500 / trees.size),
            None,
        ),
        (HATS, strides(hats), WindowSum(length, hats), sliding(length, hats.strides[-1], hats.ratios[0], 6), None),
        (ROOT, "delta 1e-6", RootWindow(WIDTH, EPSILON, DELTA, length), epochs(length), None),
    ]
    for mechanism, detail, sums, looking, known in made:
        chosen = (SHARP,) * (sums == pure) + (LOOSE,) * (sums == loose != pure)
        target = textbook.WINDOWS.get(length)
        yield Contender(WINDOW, row, length, mechanism, detail, sums, looking, known, target, "".join(chosen))


def window_trees(length: int) -> BlueSteps:
    """The trees of least mean variance."""
    shapes = [
        BlueSteps(1, EPSILON, arity, height)
        for arity, height in product(range(2, 65), range(1, LARGEST.bit_length()))
        if arity ** (height - 1) < length and arity**height <= LARGEST
    ]
    best = min(shapes, key=lambda steps: steps.levels**2 * steps.mean_window_squares(length))
    return BlueSteps(WIDTH, EPSILON, best.arity, best.height)


def with_deltas(length: int) -> list[tuple[float, float, str]]:
    """For each delta the variance of a draw, the mean variance of the square root, and what sharp takes."""
    found = []
    for delta in DELTAS:
        root = RootWindow(WIDTH, EPSILON, delta, length)
        taken = decays.Window(length).sharp(WIDTH, EPSILON, delta).mechanism
        found.append((1 / float(2 * root.tree.rho), root.mean_variance / WIDTH**2, taken))
    return found


def by_steps(length: int) -> Steps:
    """Windows side by side, which share no draw."""
    cost = 25 + 10 * length if length < 150 else 550 + 0.37 * length
    return Steps(length, 1, length, 8, 8 * cost, fewest=100)


def by_patent(length: int) -> Steps:
    """Windows that share no node, at all places of their blocks."""
    return Steps(2 * length, length, 2 * length + int(length * 0.6180339887) + 1, 64, 64 * 100)


def sliding(length: int, top: int, low: int, microseconds: float) -> Steps:
    """A window that moves on, past several of the largest blocks; the first one costs as much as all its steps."""
    run = max(4 * length if length < 1 << 14 else length, 4 * top)
    stride = max(low // 2, run // 256, 1)
    cost = microseconds * (length + 2 * top + run) + 25 * run / stride
    return Steps(length + top, top, stride, run // stride, cost, places=PHASES, fewest=64 if top < 1 << 13 else 40)


def epochs(length: int) -> Steps:
    """From the first full window to the end of the third epoch of four windows, or of the first if they are long."""
    stride, whole = max(length // 8, 1), 4 * length
    run = (3 if length < 1 << 14 else 1) * whole
    looks = (run - length) // stride
    return Steps(length, whole, stride, looks, 8 * run, places=100, shifts=False, fewest=16)


# ---------------------------------------------------------------- exponential and polynomial decay


def exponentials(count: int) -> Iterator[Contender]:
    """Alpha = 1 - 1 / count."""
    alpha = 1 - Fraction(1, count)
    decay, named = Exponentials.exponential(alpha), Exponential(alpha)
    pure = named.sharp(WIDTH, EPSILON)
    trees = exponential_trees(decay)
    hats = HatSteps(WIDTH, EPSILON, best_ratios(decay.squares(1 << 60), ends=1))
    known, patent = textbook.exponential_steps(float(alpha)), textbook.exponential_patent(float(alpha))
    jumps = Steps(1 << 20, 1 << 20, int(8.09 * count) | 1, 64, 64 * 120, places=PHASES)
    made: list[tuple[str, str, DecayedSum, Looking, float | None]] = [
        (STEPS, "", DecayedSteps(decay, LaplaceSteps(WIDTH, EPSILON)), drawing(count), known),
        (PATENT, "", named.patent(WIDTH, EPSILON), jumps, patent),
        (BLUE, shape(trees), DecayedSteps(decay, trees), walking(count, trees.size), None),
        (HATS, strides(hats), DecayedSteps(decay, hats), walking(count, hats.strides[-1]), None),
    ]
    for mechanism, detail, sums, looking, closed in made:
        chosen = SHARP if sums == pure else ""
        target = textbook.EXPONENTIALS.get(count)
        yield Contender(EXPONENTIAL, f"{float(alpha)}", count, mechanism, detail, sums, looking, closed, target, chosen)


def exponential_trees(decay: Exponentials) -> BlueSteps:
    """The trees of least mean variance."""
    shapes = [
        BlueSteps(1, EPSILON, arity, height)
        for arity, height in product(range(2, 65), range(1, LARGEST.bit_length()))
        if arity**height <= LARGEST
    ]
    best = min(shapes, key=lambda steps: steps.levels**2 * steps.mean_decayed_squares(decay))
    return BlueSteps(WIDTH, EPSILON, best.arity, best.height)


def walking(count: int, period: int) -> Steps:
    """Step by step, once what came before the first look weighs little."""
    begin, run, stride = max(2 * count, 50), max(4 * count, 2000), max(count // 32, 1)
    cost, late = 9.0 * (begin + run + period / 2), 50 * count // period * period
    return Steps(begin, period, stride, run // stride, cost, skips=False, places=PHASES, late=late)


def drawing(count: int) -> Draws:
    """The same, without a period."""
    begin, stride = max(2 * count, 50), max(count // 25, 1)
    looks = 1000 if stride > 1 else 2000
    cost = 0.45 * (begin + looks * stride) + 10 * looks
    return Draws(begin, 1, stride, looks, cost, late=50 * count)


def polynomials(exponent: Fraction) -> Iterator[Contender]:
    """A step of age a weighs (a + 1)**-exponent, up to ages of ten million."""
    decay, c = Polynomial(exponent), float(exponent)
    sharp, patent = decay.sharp(WIDTH, EPSILON), decay.patent(WIDTH, EPSILON)
    walk = Steps(500, 1, 4, 250, 40_000, skips=False, late=50_000_000)
    jumps = Steps(1 << 24, 1 << 24, 10_368_899, 25, 25 * 15_000, places=400)
    bound = textbook.polynomial_steps(c)
    yield Contender(POLYNOMIAL, f"{c:g}", c, STEPS, "", sharp, walk, bound, bound, SHARP)
    yield Contender(POLYNOMIAL, f"{c:g}", c, PATENT, "weights to 20 %", patent, jumps, None, bound)


# ---------------------------------------------------------------- all windows


def all_windows(end: int, length: int) -> Iterator[Contender]:
    """One window; without a decay, the counter is the sharp one."""
    decay = AllWindows()
    patent, sharp = decay.patent(WIDTH, EPSILON), decay.sharp(WIDTH, EPSILON)
    row, slow = f"{end:,}; {length:,}", 600 + 0.8 * end
    yield Contender(ALL, row, length, PATENT, "", patent, Window(end, length, 1000))
    yield Contender(ALL, row, length, BLUE, "growing", sharp, Window(end, length, slow), sharp=SHARP)


def shape(trees: BlueSteps) -> str:
    """Of blocks.

    >>> shape(BlueSteps(1, EPSILON, 14, 2))
    '14^2'
    """
    return f"{trees.arity}^{trees.height}" if trees.height > 1 else f"{trees.arity}"


def strides(steps: NoisedSteps) -> str:
    """Of hats."""
    return " · ".join(map(str, steps.ratios)) if isinstance(steps, HatSteps) else ""
