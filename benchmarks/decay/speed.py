"""Time per step and size of the state of every mechanism's summer, and long runs of the sharp ones."""

import json
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from benchmarks.decay.contenders import (
    BLUE,
    DELTA,
    EPSILON,
    HATS,
    PATENT,
    ROOT,
    STEPS,
    WIDTH,
    exponential_trees,
    window_trees,
)
from benchmarks.decay.measuring import subkeys
from shoal.mechanisms.sums import decays
from shoal.mechanisms.sums.decayed import DecayedSteps
from shoal.mechanisms.sums.decays import AllWindows, Exponential, Polynomial
from shoal.mechanisms.sums.exponentials import Exponentials
from shoal.mechanisms.sums.gaussian_window import RootWindow
from shoal.mechanisms.sums.steps.hat_variance import best_ratios
from shoal.mechanisms.sums.steps.hats import HatSteps
from shoal.mechanisms.sums.steps.laplace import LaplaceSteps
from shoal.mechanisms.sums.sums import DecayedSum, Summer
from shoal.mechanisms.sums.window import WindowSum

LENGTH, ALPHA, EXPONENT, HORIZON = 1024, Fraction(999, 1000), Fraction(3, 2), 1000
FEW, FAR = 10_000, 1_000_000  # steps
PRIME = 1_000_003


@dataclass(frozen=True)
class State:
    """What must survive a restart after so many steps, and what the last of them cost."""

    steps: int
    microseconds: float  # of processor time per step, over the steps since the row before; noise included
    head: int  # bytes, as JSON
    kept: int  # entries
    peak: float  # memory of the process until then, in MiB


@dataclass(frozen=True)
class Speed:
    """Of one mechanism."""

    decay: str
    mechanism: str
    states: Sequence[State]


def summed() -> Iterator[tuple[str, str, DecayedSum]]:
    """Every mechanism once."""
    row, window = f"window of {LENGTH:,}", decays.Window(LENGTH)
    hats = HatSteps(WIDTH, EPSILON, best_ratios(LENGTH, ends=2))
    yield row, STEPS, WindowSum(LENGTH, LaplaceSteps(WIDTH, EPSILON))
    yield row, PATENT, window.patent(WIDTH, EPSILON)
    yield row, BLUE, WindowSum(LENGTH, window_trees(LENGTH))
    yield row, HATS, WindowSum(LENGTH, hats)
    yield row, ROOT, RootWindow(WIDTH, EPSILON, DELTA, LENGTH)
    row, decay = f"alpha = {float(ALPHA)}", Exponentials.exponential(ALPHA)
    hats = HatSteps(WIDTH, EPSILON, best_ratios(decay.squares(1 << 60), ends=1))
    yield row, STEPS, DecayedSteps(decay, LaplaceSteps(WIDTH, EPSILON))
    yield row, PATENT, Exponential(ALPHA).patent(WIDTH, EPSILON)
    yield row, BLUE, DecayedSteps(decay, exponential_trees(decay))
    yield row, HATS, DecayedSteps(decay, hats)
    row, polynomial = f"exponent {float(EXPONENT)}", Polynomial(EXPONENT)
    yield row, STEPS, polynomial.sharp(WIDTH, EPSILON)
    yield f"{row}, ages to {HORIZON:,}", PATENT, Polynomial(EXPONENT, HORIZON).patent(WIDTH, EPSILON)
    yield "all windows", PATENT, AllWindows().patent(WIDTH, EPSILON)
    yield "all windows", BLUE, AllWindows().sharp(WIDTH, EPSILON)


def speeds(*, quick: bool) -> list[Speed]:
    """The first steps; then silence up to the last ones of a million, and as many of them."""
    few = FEW // 10 if quick else FEW
    found = []
    for decay, mechanism, sums in summed():
        summer = sums.summer(subkeys(f"speed {decay} {mechanism}", 0))
        early = run(summer, 0, few)
        summer.skip(FAR - 2 * few - 1)
        summer.add(0)  # what it finds out after so long a silence is no matter of speed
        found.append(Speed(decay, mechanism, [early, run(summer, FAR - few, few)]))
    return found


def long_runs(steps: int) -> list[Speed]:
    """Every step of so many, of the sharp window and the sharp exponential sum: no step is skipped."""
    sharp = {
        f"window of {LENGTH:,}": decays.Window(LENGTH).sharp(WIDTH, EPSILON),
        f"alpha = {float(ALPHA)}": Exponential(ALPHA).sharp(WIDTH, EPSILON),
    }
    found = []
    for decay, sums in sharp.items():
        summer, states, done, until = sums.summer(subkeys(f"long {decay}", 0)), [], 0, min(FEW, steps)
        while done < steps:
            states.append(run(summer, done, until - done))
            done, until = until, min(10 * until, steps)
        found.append(Speed(decay, sums.mechanism, states))
    return found


def run(summer: Summer, done: int, steps: int) -> State:
    """So many more steps, every one with something in it."""
    began = time.process_time()
    for t in range(done, done + steps):
        summer.add(t * PRIME % WIDTH + 1)
    seconds = time.process_time() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    head = len(json.dumps(summer.head(), separators=(",", ":")))
    summer.take_changes()  # as after a commit: what changed is held until then
    return State(done + steps, seconds / steps * 1e6, head, len(summer.kept), peak)
