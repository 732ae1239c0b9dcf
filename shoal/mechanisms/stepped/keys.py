"""What a metric's keys say where it is released at every step, and what is refused."""

from collections.abc import Callable, Iterator
from fractions import Fraction

from shoal.mechanisms import rules
from shoal.mechanisms.life import uses_life
from shoal.mechanisms.spec import PATTERN, Spec
from shoal.mechanisms.stepped import ALGORITHMS
from shoal.mechanisms.sums import decays
from shoal.mechanisms.sums.formula import formula_weights
from shoal.mechanisms.sums.weights import Weights
from shoal.mechanisms.words import many

LISTED = ("table", "formula")  # decays whose weights are in a list
NOT_OF_PATENT = {"none": "without a decay", "forward": "for forward decay"}


def check(spec: Spec) -> None:
    """Refuse keys that are missing, not for what has a step, or contradict one another."""
    rules.refuse_presence_keys(spec)
    rules.refuse_slot_keys(spec)
    rules.check_limits(spec)
    if spec.every is not None:
        raise ValueError(f"every is for means without a decay; a {spec.statistic} is released at every step")
    if spec.step is None:
        raise ValueError("step is missing; add it")
    if spec.algorithm not in ALGORITHMS:
        raise ValueError(f"{spec.algorithm} is not for what has a step; use one of: {', '.join(ALGORITHMS)}")
    check_decay(spec, spec.step)
    rules.check_values(spec)
    rules.refuse_given(spec, ("prior", "sigma", "withheld"), "is for means without a decay")
    if spec.algorithm != "sharp":
        rules.refuse_delta(spec)
    if len(spec.values) > 1:
        raise ValueError("several values are for means without a decay; use a metric for each")
    rules.check_life(spec)


def check_decay(spec: Spec, step: int) -> None:
    """Refuse a decay that its algorithm does not have, or whose lengths are no whole steps."""
    decay = spec.decay_or_none
    if spec.algorithm == "patent" and decay.kind in NOT_OF_PATENT:
        raise ValueError(f"the patent has no mechanism {NOT_OF_PATENT[decay.kind]}; use sharp")
    if spec.algorithm == "patent" and decay.exponent is not None and decay.exponent <= 1:
        raise ValueError("the patent's bound needs an exponent above 1; use sharp, or a larger exponent")
    for key, length in (("length", decay.length), ("horizon", decay.horizon)):
        if length is not None and length % step:
            raise ValueError(f"decay {key} is not a multiple of step; choose one that is")
    for key in ("error", "zeta") if spec.algorithm != "patent" else ():
        if getattr(decay, key) is not None:
            raise ValueError(f"decay {key} is for algorithm patent; remove it")
    if decay.kind in (*LISTED, "forward"):
        decay_of(spec)  # whatever it refuses, it refuses now


def decay_of(spec: Spec) -> decays.Decay:
    """The decay that the keys ask for, its lengths counted in steps."""
    decay, step = spec.decay_or_none, spec.cadence or 1
    error = decay.error or decays.ERROR
    releases = spec.expected_releases if uses_life(spec) else None
    match decay.kind:
        case "window" if decay.updates is not None:
            return decays.Window(decay.updates, of_updates=True)
        case "window":
            return decays.Window((decay.length or step) // step)
        case "all-windows":
            return decays.AllWindows(releases, decay.zeta or decays.ZETA)
        case "exponential":
            if decay.half_life is not None:
                return decays.Exponential.half_life(Fraction(decay.half_life, step))
            return decays.Exponential(decay.alpha or Fraction(1, 2))
        case "polynomial":
            horizon = decays.HORIZON if decay.horizon is None else decay.horizon // step
            return decays.Polynomial(decay.exponent or Fraction(1), horizon, error)
        case "forward":
            return decays.Forward(decay.exponent or Fraction(1), releases)
        case "table":
            return decays.Listed(_of_decay(lambda: Weights.of(decay.weights or ())), error)
        case "formula":
            return decays.Listed(
                _of_decay(lambda: formula_weights(decay.weight or "", (decay.horizon or step) // step)), error
            )
        case _:
            return decays.Undecayed(releases)


def _of_decay(weights: Callable[[], Weights]) -> Weights:
    try:
        return weights()
    except ValueError as refused:
        raise ValueError(f"decay {refused}") from None


def clamps(spec: Spec) -> bool:
    """Whether a value that has known ends is clamped to them."""
    return spec.algorithm == "sharp" if spec.clamp is None else spec.clamp


def clauses(spec: Spec, loss: str) -> Iterator[str]:
    """The guarantee in words: what is protected, and where a unit counts."""
    if spec.statistic == "count":
        yield f"a count is exact, public and for free: {PATTERN}"
    else:
        yield loss
        yield PATTERN
    yield from rules.event_limit(spec)
    unit = spec.privacy_unit
    if spec.group is not None and not unit.is_event:
        split = "" if spec.statistic == "count" else ", so that epsilon is not split"
        yield (
            f"a {unit.words()} counts in at most {many(spec.max_groups_per_user, 'group')}, with at most "
            f"{spec.contribution_limit} samples in all{split}"
        )
