"""Any window after the fact: the sum, count or mean over it, from what one group of a metric has published.

No state and no key: a release has the noised sums that windows are made of, the number of samples since the beginning,
and its place in time. Steps that released nothing, since the group rested, hold nothing, publicly. Of n releases some
log n are read, so that a log of ten million steps answers as fast as one of ten.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from math import isclose as close

from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.linear.windows import EXACT, Step, window
from shoal.mechanisms.parts.at import AllWindows, Steps, Undecayed
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Mean, PublicCount, Sum
from shoal.mechanisms.statistic import Estimate
from shoal.models.errors import InputError
from shoal.models.releases.record import Record, Release
from shoal.models.times import EARLIEST, iso
from shoal.stream.topic import stated_terms

isclose = partial(close, rel_tol=1e-4)  # error bars have six digits


Read = Callable[[int], Release]  # by seq


@dataclass(frozen=True)
class Answer:
    """The statistic over [start, end), with its noise."""

    start: int
    end: int
    estimate: Estimate | None  # None: a mean of nothing
    first: int  # start of the group's first step; before it nothing was


def tells_windows(metric: Metric) -> bool:
    """Whether a metric's releases tell any window."""
    return (
        isinstance(metric.of, Sum | PublicCount | Mean)
        and not metric.protects_presence
        and isinstance(metric.at, Steps)
        and isinstance(metric.at.decay, Undecayed | AllWindows)
    )


def with_nodes(record: Record | None) -> Release:
    """Return the record if it is a release that windows are made of.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(record, Release) or type(record.samples) is not int or record.nodes is None:
        raise ValueError("it is no release with nodes")
    return record


def _step(release: Release) -> Step:
    return Step(int(release.samples or 0), release.nodes or ())


class History:
    """The releases of one group of one metric version, all from the first on."""

    def __init__(self, metric: Metric, mechanism: LinearStatistic, where: str, count: int, read: Read) -> None:
        """`where` names them in errors; `count`, at least 1, is the last seq.

        Raises:
            InputError: they are not of this configuration.
        """
        self._mechanism = mechanism
        self._where = where
        self._count = count
        self._read = cache(read)
        self._terms = stated_terms(metric) | {"mechanism": mechanism.mechanism}
        self._length = metric.every
        self._first, self.end = self._read(1).time, self._read(count).time  # when the first and last steps ended
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
        step = self._length
        estimate = self._estimate(step.fits(end - self._first) + 1, step.fits(length))
        return Answer(max(end - length, EARLIEST), end, estimate, self._first - step.microseconds)

    def _estimate(self, t: int, steps: int) -> Estimate | None:
        if t < 1:
            return self._mechanism.estimate((0, 0), EXACT, {})
        try:
            found = window(self._mechanism, t, min(steps, t), self._last, self._released)
        except IndexError:
            raise InputError(
                f"{self._where}: a release lacks nodes; give the releases as they were published"
            ) from None
        return found

    # ---------------------------------------------------------------- steps and releases

    def _step_of(self, seq: int) -> int:
        """The number of the step that a release ended; the group's first is 1."""
        found = self._read(seq)
        after, length = found.time - self._first, self._length
        step = length.fits(after)
        is_step = length.divides(after) and length.divides(found.time) and step >= seq - 1
        if not is_step or any(getattr(found, name) != term for name, term in self._terms.items()):
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
        return _step(self._read(self._seq(t)))

    # ---------------------------------------------------------------- are they this configuration's?
    # Another range, grid or step would give wrong answers without a word.

    def _check_bars(self, seq: int) -> None:
        """A release's noise is what the configuration says."""
        samples, noise_sd = _step(self._read(seq)).samples, self._read(seq).noise_sd
        expected = self._mechanism.estimate((samples, 0), self._mechanism.bars(self._step_of(seq)), {})
        if expected is None or not isinstance(noise_sd, int | float) or not isclose(noise_sd, expected.noise_sd):
            raise self._other(seq)

    def _check_value(self) -> None:
        """The first release's value is what the configuration makes of its nodes."""
        step = _step(self._read(1))
        estimate = self._mechanism.estimate((step.samples, sum(step.nodes)), EXACT, {})
        if estimate is None or self._read(1).value != estimate.value:
            raise self._other(1)

    def _other(self, seq: int) -> InputError:
        return InputError(
            f"{self._where}: release {seq} is not what the configuration makes; give the one that it was made by"
        )
