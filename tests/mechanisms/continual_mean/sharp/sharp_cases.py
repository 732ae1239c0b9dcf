"""What the tests of the sharp mean share: streams of bursts, and two neighbours whose charged outputs are all equal."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.continual_mean.sharp.releaser import SharpReleaser
from shoal.mechanisms.counters.blue import GrowingBlue
from shoal.mechanisms.counters.counter import Tree
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.selection import clip_range
from shoal.mechanisms.statistic import Activation, Contribution
from tests.mechanisms.mechanism_cases import KEY, Sample, by_tick, contributions, merged

TOP = 1 << 20


def sharp(
    epsilon: Fraction | int,
    m: int,
    *,
    users: int = 8,
    steps: int = TOP,
    groups: int = 1,
    horizon: int | None = 2200,
) -> Sharp:
    """A sharp mean over [-1, 3]. With few units nothing can be asked privately, unless epsilon is large."""
    grid = Grid(Fraction(-1), Fraction(3), steps)
    return Sharp(grid=grid, epsilon=Fraction(epsilon), max_contributions=m, users=users, groups=groups, horizon=horizon)


# Blocks of five octaves; of four, the last of one block, for very many releases; blocks of single samples alone; few
# octaves that want too much; first samples; whole range without blocks; one sample each; a coarse grid.
LONG, OFTEN, EVEN, TIGHT, FIRSTS, WHOLE, ONE, COARSE = CASES = (
    sharp(700, 1024),
    sharp(600, 100, horizon=10**6),
    sharp(900, 64),
    sharp(250, 240, users=5),
    sharp(480, 1024, users=5, horizon=2),
    sharp(60, 16, users=4, horizon=None),
    sharp(60, 1, users=30),
    sharp(700, 1024, steps=3),
)


class Burst(NamedTuple):
    """A unit's samples in one tick."""

    tick: int
    unit: int
    samples: int


@st.composite
def bursts(draw: st.DrawFn, units: int = 5) -> list[Burst]:
    """Some units have several samples in one tick, some more than any cap."""
    sizes = st.sampled_from([1, 1, 2, 8, 31, 64, 90, 400])
    rows = draw(
        st.lists(st.tuples(st.integers(0, 1), st.integers(0, units - 1), sizes), min_size=3, max_size=30)
        # all units alike, for as long as it lasts
        | st.tuples(st.integers(2, 30), sizes).map(lambda two: [(0, at % units, two[1]) for at in range(two[0])])
        | st.tuples(st.integers(1, 4), sizes).map(
            lambda two: [(at % units == 0, at % units, two[1]) for at in range(two[0] * units)]
        )
    )
    tick, found = 0, []
    for step, unit, samples in rows:
        tick += step
        found.append(Burst(tick, unit, samples))
    return found


def rounds(count: int, units: int, samples: int) -> list[Burst]:
    """As many ticks, in each of which each unit has so many samples."""
    return [Burst(tick, unit, samples) for tick in range(count) for unit in range(units)]


def capped(rows: Sequence[Burst], parameters: Sharp, values: Sequence[int], changed: int = -1) -> list[Sample]:
    """The samples up to the cap; values in steps, those of the changed unit from the other end of the list."""
    found, counts, steps = [], dict.fromkeys(range(100), 0), parameters.grid.steps
    for tick, unit, samples in rows:
        for _ in range(min(samples, parameters.max_contributions - counts[unit])):
            counts[unit] += 1
            place = counts[unit] * (3 + unit)
            value = values[-place % len(values)] if unit == changed else values[place % len(values)]
            found.append(Sample(tick, f"{unit:032x}", value * steps >> 20))
    return found


class Call(NamedTuple):
    """What a private choice was made from."""

    purpose: str
    counts: tuple[int, ...]
    target: int
    epsilon: Fraction


class Calls:
    """Chooses what the test says, in place of the exponential mechanism, and notes what it would have chosen from."""

    def __init__(self, choices: Sequence[int]) -> None:
        self._choices = choices
        self.made: list[Call] = []

    def _choose(self, call: Call, candidates: int) -> int:
        self.made.append(call)
        return self._choices[(len(self.made) - 1) % len(self._choices)] % candidates

    @contextmanager
    def instead(self) -> Iterator[None]:
        """While this is open."""

        def centre(counts: Sequence[int], epsilon: Fraction, words: Any) -> int:
            return self._choose(Call("centre", tuple(counts), 0, epsilon), len(counts) + 1)

        def chosen(left: Sequence[int], target: int, epsilon: Fraction, words: Any) -> int:
            return self._choose(Call("scale", tuple(left), target, epsilon), len(left))

        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(clip_range, "centre", centre)
            monkeypatch.setattr(clip_range, "scale", chosen)
            yield


class Given:
    """A counter whose noise makes the releases those of another run."""

    def __init__(self, tree: Tree, noise: dict[int, int]) -> None:
        self.tree, self._noise = tree, noise

    def noise(self, t: int) -> int:
        return self._noise[t]


class Run:
    """A releaser, tick by tick, that may be restarted after any."""

    def __init__(self, parameters: Sharp, choices: Sequence[int]) -> None:
        self.parameters, self.calls = parameters, Calls(choices)
        self.releaser = parameters.releaser(KEY, b"g")
        self.noise: dict[int, int] = {}
        self.activations: list[Activation] = []

    def tick(self, sent: Sequence[Contribution]) -> None:
        with self.calls.instead():
            for contribution in sent:
                assert self.releaser.add(contribution) == ()
            self.activations += self.releaser.close()

    def play(self, samples: Sequence[Sample]) -> "Run":
        """All ticks of these samples."""
        for tick in by_tick(merged(self.parameters, samples)):
            self.tick(tick)
        return self

    def restart(self) -> None:
        self.releaser = restored(self.parameters, self.releaser)

    @property
    def charged(self) -> Fraction:
        """By what was said to be charged, so far, the counter included."""
        calls = sum((activation.epsilon for activation in self.activations), Fraction(0))
        if self.releaser._beginning is None:
            return calls
        tree = self.releaser._counter.tree
        assert isinstance(tree, GrowingBlue)
        return calls + tree.epsilon

    @property
    def noisy(self) -> int:
        """The numerator of the release."""
        return self.releaser._total + self.releaser._counter.noise(self.releaser._ticks)

    def follow(self, other: "Run") -> None:
        """Let the noise make up for the difference, so that both have published the same."""
        releaser = self.releaser
        self.noise[releaser._ticks] = other.noisy - releaser._total
        tree = releaser._counter.tree
        assert isinstance(tree, GrowingBlue)
        releaser._counter = Given(tree, self.noise)  # type: ignore[assignment]


def restored(parameters: Sharp, releaser: SharpReleaser) -> SharpReleaser:
    """Another one, from what survives a crash."""
    kept, head = list(releaser.kept.values()), json.loads(json.dumps(releaser.head()))
    found = parameters.releaser(KEY, b"g")
    found.restore(head, kept)
    return found


class Pair:
    """Neighbours: runs over two streams that differ in the values of one unit, all charged outputs being equal."""

    def __init__(
        self,
        parameters: Sharp,
        one: Sequence[Sample],
        other: Sequence[Sample],
        choices: Sequence[int],
        restarts: int = 0,
    ) -> None:
        self.left, self.right = Run(parameters, choices), Run(parameters, choices)
        self.moved = self.elements = 0  # what met the counter, in L1, and in how many ticks
        before = 0
        streams = by_tick(contributions(parameters, one)), by_tick(merged(parameters, other))
        for at, (first, second) in enumerate(zip(*streams, strict=True)):
            self.left.tick(first)
            self.right.tick(second)
            self._compare()
            change = self.left.releaser._total - self.right.releaser._total
            self.moved, self.elements = self.moved + abs(change - before), self.elements + (change != before)
            before = change
            if restarts >> at % 20 & 1:
                self.left.restart()
                self.right.restart()
            if self.left.releaser._beginning:
                self.right.follow(self.left)
                assert self.left.releaser.estimate() == self.right.releaser.estimate()

    @property
    def width(self) -> int:
        """What the counter's noise is made for; nothing while all wait."""
        return self.left.releaser._counter.tree.width if self.left.releaser._beginning else 0

    def _compare(self) -> None:
        """Everything but sums is equal."""
        one, other = public(self.left.releaser), public(self.right.releaser)
        assert one == other
        assert self.left.activations == self.right.activations
        assert self.left.releaser.take_changes()[1] == self.right.releaser.take_changes()[1]


def public(releaser: SharpReleaser) -> list[Any]:
    """Of a state, what no value moves but through charged outputs."""
    beginning, clip, clips, counts, sums, previous, waiting = releaser.head()
    levels: dict[int, int] = {}
    for level, _, samples, _ in waiting:
        levels[level] = levels.get(level, 0) + samples
    names, tree = sorted(releaser.kept), releaser._counter.tree if beginning else None
    return [beginning, clip, clips, counts, sums[0], previous[0], levels, names, tree]


def mode(releaser: SharpReleaser) -> str:
    """How it began."""
    match releaser._beginning:
        case None:
            return "waits"
        case (_, 0, 0, _):
            return "whole range"
        case (_, _, 0, _):
            return "first samples"
        case (_, _, _, alike):
            return "alike" if alike else "unalike"
