"""The sharp mean's state: it survives a crash after any tick, and nothing depends on order or grouping in a tick."""

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.statistic import Contribution
from tests.mechanisms.continual_mean.sharp.sharp_cases import (
    CASES,
    COARSE,
    EVEN,
    FIRSTS,
    LONG,
    OFTEN,
    TOP,
    WHOLE,
    Burst,
    Run,
    bursts,
    capped,
    mode,
    restored,
    rounds,
)
from tests.mechanisms.mechanism_cases import Sample, by_tick, contributions, json_able, merged
from tests.support.cover import in_a_loop
from tests.support.effort import examples

CHOICES = st.lists(st.integers(0, 200), min_size=1, max_size=8)

MIXED = [0, TOP, TOP // 3, TOP // 2, 7]
STREAMS: list[tuple[str, Sharp, list[Burst], list[int]]] = [
    ("waits", LONG, rounds(12, 4, 1), [0]),
    ("whole range", WHOLE, rounds(9, 4, 3), [0]),
    ("unalike", LONG, rounds(8, 4, 200), [0]),
    ("first samples", FIRSTS, rounds(3, 5, 1) + [Burst(3 + at // 5, at % 5, 40) for at in range(99)], [60, 4]),
    ("unalike", LONG, rounds(40, 4, 11), [0, 0]),
    ("unalike", COARSE, rounds(40, 4, 11), [0, 0]),
    ("alike", LONG, rounds(60, 4, 11), [59, 12, 1]),
    ("alike", OFTEN, rounds(13, 4, 8), [59, 10, 0]),
    ("alike", EVEN, rounds(30, 4, 3), [30, 10, 2]),
]


def seen(run: Run) -> list[Any]:
    """All that is published and kept."""
    releaser = run.releaser
    return [releaser.head(), dict(releaser.kept), releaser.estimate()]


@in_a_loop
@pytest.mark.parametrize(("begun", "parameters", "rows", "choices"), STREAMS)
def test_a_crash_after_any_tick_changes_nothing(
    begun: str, parameters: Sharp, rows: list[Burst], choices: list[int]
) -> None:
    # given one that never stops, and one that is restored from JSON after every tick
    whole, broken = Run(parameters, choices), Run(parameters, choices)
    for tick in by_tick(merged(parameters, capped(rows, parameters, MIXED))):
        whole.tick(tick)
        broken.tick(tick)
        broken.restart()
        assert json_able(whole.releaser.head())
        assert seen(whole) == seen(broken)
    # then both have asked and published the same
    assert mode(whole.releaser) == begun
    assert whole.calls.made == broken.calls.made
    assert whole.activations == broken.activations


@examples(30)
@given(st.sampled_from(CASES), bursts(), CHOICES, st.integers(0, 1 << 20))
def test_so_do_crashes_after_some(parameters: Sharp, rows: list[Burst], choices: list[int], restarts: int) -> None:
    whole, broken = Run(parameters, choices), Run(parameters, choices)
    for at, tick in enumerate(by_tick(merged(parameters, capped(rows, parameters, MIXED)))):
        whole.tick(tick)
        broken.tick(tick)
        if restarts >> at % 20 & 1:
            broken.restart()
    assert seen(whole) == seen(broken)
    assert whole.activations == broken.activations


@in_a_loop
@pytest.mark.parametrize(("begun", "parameters", "rows", "choices"), STREAMS)
def test_what_a_store_keeps_from_changes_is_what_is_kept(
    begun: str, parameters: Sharp, rows: list[Burst], choices: list[int]
) -> None:
    """Rows are written once and dropped once; a row that came and went within a tick is never written."""
    rows = sorted(row._replace(tick=row.tick + 2 * row.unit) for row in rows)
    run, store, written = Run(parameters, choices), dict[tuple[int, str], Contribution](), Counter[tuple[int, str]]()
    for tick in by_tick(merged(parameters, capped(rows, parameters, MIXED))):
        run.tick(tick)
        changed, dropped = run.releaser.take_changes()
        for place in dropped:
            del store[place]
        for row in changed:
            written[row.level, row.pseudonym] += 1
            store[row.level, row.pseudonym] = row
        assert store == run.releaser.kept
        assert run.releaser.take_changes() == ([], [])
    assert max(written.values(), default=1) == 1
    assert begun != "alike" or written


def test_kept_blocks_have_their_own_sums_and_weights() -> None:
    """Not what came: the sample that closes one of the first 64 brought its own value along."""
    samples = capped(rounds(1, 2, 48), EVEN, [5, 9])
    run = Run(EVEN, [0])
    (tick,) = by_tick(merged(EVEN, samples))
    for row in tick:
        run.releaser.add(row)
    values = [s.value for s in samples if s.unit.endswith("1")]
    kept = {level: row for (level, name), row in run.releaser.kept.items() if name.endswith("1")}
    shape = EVEN.shape
    assert [row[2:] for row in kept.values()] == [
        (shape.end(b), level, shape.weight(b), sum(values[shape.end(b) - shape.weight(b) : shape.end(b)]))
        for b, level in enumerate(kept)
    ]
    assert list(kept) == [7, 8, 9, 10, 11, 12]
    assert restored(EVEN, run.releaser).kept == run.releaser.kept


class TestWithinATick:
    """Everything that decides happens when a tick is complete."""

    @examples(20)
    @given(st.sampled_from(CASES), bursts(), CHOICES, st.randoms(use_true_random=False))
    def test_order_does_not_matter(
        self, parameters: Sharp, rows: list[Burst], choices: list[int], shuffled: random.Random
    ) -> None:
        sorted_, mixed = Run(parameters, choices), Run(parameters, choices)
        for tick in by_tick(contributions(parameters, capped(rows, parameters, MIXED))):
            sorted_.tick(tick)
            mixed.tick(shuffled.sample(tick, len(tick)))
            assert self._same(sorted_, mixed)

    @examples(20)
    @given(st.sampled_from(CASES), bursts(), CHOICES, st.randoms(use_true_random=False))
    def test_summing_over_units_does_not_either(
        self, parameters: Sharp, rows: list[Burst], choices: list[int], shuffled: random.Random
    ) -> None:
        """Whether all single samples of a level and bucket come as one partial, as several, or one by one."""
        samples = capped(rows, parameters, MIXED)
        alone, together, some = (Run(parameters, choices) for _ in range(3))
        streams = [by_tick(way(parameters, samples)) for way in (contributions, merged)]
        for one_by_one, all_ in zip(*streams, strict=True):
            alone.tick(one_by_one)
            together.tick(all_)
            some.tick(self._in_two(parameters, samples, all_[0].effective, shuffled))
            assert self._same(alone, together)
            assert self._same(alone, some)

    @staticmethod
    def _in_two(parameters: Sharp, samples: Sequence[Sample], tick: int, shuffled: random.Random) -> list[Contribution]:
        """As two partitions of bound would send it."""
        own = {s.unit: shuffled.random() < 0.5 for s in samples}
        halves = ([s for s in samples if own[s.unit] == side] for side in (False, True))
        return sorted(row for half in halves for row in merged(parameters, half) if row.effective == tick)

    @staticmethod
    def _same(one: Run, other: Run) -> bool:
        assert seen(one) == seen(other)
        assert one.calls.made == other.calls.made
        return one.activations == other.activations


@examples(30)
@given(st.sampled_from([LONG, EVEN, OFTEN, FIRSTS]), bursts(), CHOICES, st.randoms(use_true_random=False))
def test_late_contributions_count_when_they_come(
    parameters: Sharp, rows: list[Burst], choices: list[int], shuffled: random.Random
) -> None:
    """Some come ticks later than they should: nothing is lost, and none counts twice."""
    ticks = by_tick(contributions(parameters, capped(rows, parameters, MIXED)))
    late: list[list[Contribution]] = [[] for _ in range(len(ticks) + 4)]
    for at, tick in enumerate(ticks):
        for row in tick:
            late[at + shuffled.choice([0, 0, 0, 1, 4])].append(row)
    run, in_time = Run(parameters, choices), Run(parameters, choices)
    for tick in late:
        run.tick(tick)
    in_time.tick([row for tick in ticks for row in tick])
    for one in (run, in_time):
        releaser = one.releaser
        assert one.charged <= parameters.group_epsilon
        if releaser._beginning is None:
            assert releaser._samples == 0
            continue
        # all of what its beginning and its open blocks let in, by who sent what
        counts = Counter(row.pseudonym for tick in ticks for row in tick if row.level < parameters.shape.levels)
        assert sum(counts.values()) >= len(counts)
        assert releaser._samples == expected(one, [row for tick in ticks for row in tick])


def expected(run: Run, sent: list[Contribution]) -> int:
    """How many samples count, of all that was sent."""
    releaser, shape = run.releaser, run.parameters.shape
    beginning = releaser._beginning
    assert beginning is not None
    last, total = min(shape.alone if beginning.alike else beginning.cap, shape.singles), 0
    for row in sent:
        block = row.level - shape.levels
        single = row.number if block < 0 or row.number <= shape.singles else None
        total += single is not None and single <= last
        total += shape.weight(block) if 0 <= block < len(releaser._clips) and releaser._clips[block] else 0
    return total
