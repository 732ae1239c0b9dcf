"""Any window after the fact: the sum, count or mean over it, from what one group of a metric has published.

No state and no key: a release has the noised sums that windows are made of, the number of samples since the beginning,
and its place in time. Steps that released nothing, since the group rested, hold nothing, publicly. Of n releases some
log n are read, so that a log of ten million steps answers as fast as one of ten.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from math import isclose as close
from typing import Any, NamedTuple

from shoal.mechanisms.decayed_sum.statistic import EXACT, Step, Stepped
from shoal.mechanisms.statistic import Estimate
from shoal.models.config.metric import MetricSection
from shoal.models.errors import InputError
from shoal.models.times import EARLIEST, iso, time_of_text

KINDS = ("none", "all-windows")  # decays whose releases tell any window
STATED = ("epsilon", "delta", "unit", "relation", "algorithm", "version")
isclose = partial(close, rel_tol=1e-4)  # error bars have six digits


class WindowRelease(NamedTuple):
    """What a window needs of a release."""

    at: int
    step: Step
    value: float | None
    noise_sd: float | None
    agrees: bool  # it states the terms of the configuration


Read = Callable[[int], WindowRelease]  # by seq


@dataclass(frozen=True)
class Answer:
    """The statistic over [start, end), with its noise."""

    start: int
    end: int
    estimate: Estimate | None  # None: a mean of nothing
    first: int  # start of the group's first step; before it nothing was


def tells_windows(section: MetricSection) -> bool:
    """Whether a metric's releases tell any window."""
    return section.step is not None and section.decay_or_none.kind in KINDS


def stated(section: MetricSection, mechanism: Stepped) -> dict[str, Any]:
    """The terms that every release of this configuration states."""
    terms = {name: getattr(section, name) for name in STATED}
    terms |= {name: float(term) for name, term in terms.items() if isinstance(term, Fraction)}
    return terms | {"mechanism": mechanism.mechanism}


def seen(fields: dict[str, Any], terms: dict[str, Any]) -> WindowRelease:
    """A release, read.

    Raises:
        ValueError: it is none, or not one of a sum that tells windows.
    """
    at, samples, nodes = fields.get("at"), fields.get("samples"), fields.get("nodes")
    time = time_of_text(at) if isinstance(at, str) else None
    value, sd = fields.get("value"), fields.get("noise_sd")
    if time is None or type(samples) is not int or not isinstance(nodes, list) or not _numbers(value, sd):
        raise ValueError("it is no release with nodes")
    return WindowRelease(time, Step(samples, tuple(map(_node, nodes))), value, sd, terms.items() <= fields.items())


def _numbers(*found: Any) -> bool:
    return all(one is None or type(one) in (int, float) for one in found)


def _node(node: Any) -> int:
    if type(node) not in (int, str):
        raise ValueError("it has a node that is no integer")
    return int(node)


class History:
    """The releases of one group of one metric version, all from the first on."""

    def __init__(self, section: MetricSection, mechanism: Stepped, where: str, count: int, read: Read) -> None:
        """`where` names them in errors; `count`, at least 1, is the last seq.

        Raises:
            InputError: they are not of this configuration.
        """
        self._section = section
        self._mechanism = mechanism
        self._where = where
        self._count = count
        self._read = cache(read)
        self._every = section.cadence or 1
        self._first, self.end = self._read(1).at, self._read(count).at  # when the first and last steps ended
        self._last_step = self._step_of(count)
        self._check_bars(1)
        self._check_bars(count)
        self._check_value()

    def answer(self, end: int, length: int) -> Answer:
        """The statistic over the steps of [end - length, end).

        Raises:
            InputError: the end is after the last release.
        """
        if end > self.end:
            raise InputError(
                f"{self._where}: {iso(end)} is after the end of the last release, {iso(self.end)}; choose that one or "
                "an earlier one, or wait"
            )
        t, steps = (end - self._first) // self._every + 1, length // self._every
        return Answer(max(end - length, EARLIEST), end, self._estimate(t, steps), self._first - self._every)

    def _estimate(self, t: int, steps: int) -> Estimate | None:
        if t < 1:
            return self._mechanism.estimate(0, 0, EXACT)
        try:
            found = self._mechanism.window(t, min(steps, t), self._last, self._released)
        except IndexError:
            raise InputError(
                f"{self._where}: a release lacks nodes; give the releases as they were published"
            ) from None
        return found

    # ---------------------------------------------------------------- steps and releases

    def _step_of(self, seq: int) -> int:
        """The number of the step that a release ended; the group's first is 1."""
        found = self._read(seq)
        step, rest = divmod(found.at - self._first, self._every)
        if rest or found.at % self._every or step < seq - 1 or not found.agrees:
            raise self._other(seq)
        return step + 1

    def _seq(self, t: int) -> int:
        """How many of the steps 1 .. t released something; where no group rested this reads nothing."""
        # Of two releases the steps are at least as far apart as the seqs.
        low, high = max(0, self._count - max(0, self._last_step - t)), min(self._count, t)
        while low < high:
            middle = (low + high + 1) // 2
            beyond = self._step_of(middle) - t
            if beyond <= 0:
                low, high = middle, min(high, middle - beyond)
            else:
                low, high = max(low, middle - beyond), middle - 1
        return low

    def _last(self, t: int) -> int:
        """The last of the steps 1 .. t that released something."""
        seq = self._seq(t)
        return self._step_of(seq) if seq else 0

    def _released(self, t: int) -> Step:
        return self._read(self._seq(t)).step

    # ---------------------------------------------------------------- are they this configuration's?
    # Another range, grid or step would give wrong answers without a word.

    def _check_bars(self, seq: int) -> None:
        """A release's noise is what the configuration says."""
        found = self._read(seq)
        expected = self._mechanism.estimate(0, found.step.samples, self._mechanism.bars(self._step_of(seq)))
        if expected is None or found.noise_sd is None or not isclose(found.noise_sd, expected.noise_sd):
            raise self._other(seq)

    def _check_value(self) -> None:
        """The first release's value is what the configuration makes of its nodes."""
        found = self._read(1)
        estimate = self._mechanism.estimate(sum(found.step.nodes), found.step.samples, EXACT)
        if estimate is None or found.value != estimate.value:
            raise self._other(1)

    def _other(self, seq: int) -> InputError:
        return InputError(
            f"{self._where}: release {seq} is not what the configuration makes; give the one that it was made by"
        )
