"""What leaves a worker is a function of pattern, configuration and charged outputs: nothing else that can be seen.

Derived line by line in docs/proofs/one-stream.md ("What leaves a worker"). Here two neighbours go through the machines
of a worker, and everything around the releases is compared: /metrics, /health, which sources are held back, how many
records and messages there are and how they are numbered, log lines, and what is said when a message is missing.
"""

from unittest.mock import patch

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from shoal.mechanisms.selection import clip_range
from shoal.models.config.file import Config
from shoal.models.records import Message
from shoal.stream import contributions, pieces, release
from shoal.stream.bound import BoundPartition
from shoal.stream.contributions import MESSAGE_BYTES, Outgoing, Outlets
from shoal.stream.file_run import Line
from tests.privacy.hosted import Hosted, compiled
from tests.privacy.observing import CONFIGS, ONE_SAMPLE, SHARP, Row, neighbours, without_totals
from tests.privacy.test_neighbours import schedules
from tests.stream.simulation import STAMP, config
from tests.support.cover import in_a_loop, some
from tests.support.effort import examples

pytestmark = pytest.mark.slow

ENDS = ["0", "1", "64", "-1e9", "1e400", "-1e400", "0.5", "1e-400", "9" * 400]
END = b"2000-01-01T00:00:00Z"


@pytest.fixture(scope="module", autouse=True)
def small_limits():
    """So small that a few events fill messages and transactions, and hold sources back."""
    with (
        patch.object(contributions, "MESSAGE_BYTES", 900),
        patch.object(release, "MAX_LEAD", 6),
        patch.object(pieces, "GROUPS", 7),
    ):
        yield


def hosted(cfg: Config, rows, schedule, sources=1, homes=1):
    """All that is seen of a worker with these events."""
    with capture_logs() as said:
        worker = Hosted(compiled(cfg, sources, homes))
        for row in rows:
            worker.produce(row.user, row.raw())
        worker.end(END)
        for action, where, amount in schedule:
            worker.act(action, where, amount)
        worker.drain()
        worker.seen.append(worker.texts())
    worker.seen.append(said)
    return worker


@examples(6)
@given(
    st.sampled_from(CONFIGS), neighbours(st.one_of(st.sampled_from(ENDS), st.sampled_from(["0.1", "0.9"]))),
    st.sampled_from([1, 3]), st.sampled_from([1, 2]), schedules,
)  # fmt: skip
def test_a_worker_shows_nothing_of_values(cfg, pair, sources, homes, schedule):
    first, second = (hosted(cfg, rows, schedule, sources, homes) for rows in (pair.first, pair.second))
    assert first.seen == second.seen


@examples(3)
@given(st.sampled_from(SHARP), neighbours(st.sampled_from(ENDS), least=40, size=60), schedules)
def test_nor_does_one_that_chose_a_clip_range(cfg, pair, schedule):
    with (
        patch.object(clip_range, "centre", lambda counts, epsilon, words: len(counts) // 3),
        patch.object(clip_range, "scale", lambda left, target, epsilon, words: len(left) // 3),
    ):
        first, second = (hosted(cfg, rows, schedule) for rows in (pair.first, pair.second))
    assert first.seen == second.seen


# ---------------------------------------------------------------- one user whose value has a bucket of its own

SPREAD = config({"algorithm": "sharp", "range": (0, 64), "grid": 64, "max_per_group": 9, "users": None, "group": "g"})


def crowd(number: str) -> list[Row]:
    """In each of three groups twenty users of one tick, two in each of ten buckets, and in the last one Ann."""
    others = [Row(f"user{group}{n}", str(n % 10), 0, group) for group in "abc" for n in range(20)]
    return [*others, Row("ann", number, 0, "c")]


@in_a_loop
@pytest.mark.parametrize("number", ["1", "31", "64", "1e400", "-5"])
def test_a_bucket_of_its_own_does_not_cut_a_message(number):
    """Regression: messages were cut by the cells that the values fill, and /metrics counts messages."""
    plan = compiled(SPREAD)
    for limit in range(900, 1500, 17):  # a cell is reckoned with 35 bytes: some limit lies between any two numbers
        with patch.object(contributions, "MESSAGE_BYTES", limit):
            sent = []
            for rows in crowd("0"), crowd(number):
                bound = BoundPartition(plan, 0)
                bound.start(0)
                bound.process([Line(n, row.raw(), timestamp=STAMP) for n, row in enumerate(rows)], len(rows))
                taken = bound.take(0)
                assert taken is not None
                sent.append([(home, without_totals(message)) for home, message in taken.messages])
        assert sent[0] == sent[1]
        assert len(sent[0]) > 1


@pytest.mark.parametrize("number", ["1", "64"])
def test_a_bucket_of_its_own_does_not_hold_a_source_back(number):
    """Regression: a source was held back by the cells that wait, so its lag showed how values spread."""
    held = []
    # from about as many cells as there are (thirty, and Ann's is one more) to as many as there may be
    for lead in sorted({31, *some(range(25, 66), 11)}):
        with patch.object(release, "MAX_LEAD", lead):
            workers = []
            for rows in crowd("0"), crowd(number):
                worker = Hosted(compiled(SPREAD, sources=2))
                for row in rows:
                    worker.produce(row.user, row.raw())
                worker.produce("ann", Row("ann", "0", 9, "c").raw())  # hers is ahead of the other partition
                worker.bound(0, 99)
                worker.bound(1, 99)
                worker.release(0, 9)
                workers.append(worker)
            held.append(bool(workers[0].ahead()))
        assert workers[0].seen == workers[1].seen
    assert held == sorted(held, reverse=True)
    assert {*held} == {True, False}


def test_the_worker_of_these_tests_shows_what_a_worker_shows():
    """What the laws above are worth: messages are cut, sources held back, and something is said."""
    rows = [Row(f"user{n % 5}", f"0.{n % 10}", n // 4, "abc"[n % 3]) for n in range(200)]
    seen = [hosted(cfg, rows, [("bound", 0, 60), ("release", 0, 9)], sources=3) for cfg in CONFIGS[:3] + CONFIGS[-1:]]
    shown = [str(worker.seen) for worker in seen]
    assert all("shoal_contribution_messages_total" in one and "shoal_uncommitted_records" in one for one in shown)
    assert any("StagePartition(stage='bound'" in one for one in shown)  # held back
    assert all("begins again at its first message" in one for one in shown)
    assert any("a message is lost" in one for one in shown)
    assert any("repeated: 1" in one for one in shown)
    # messages are cut below the limit, and values do show in what is charged
    assert any(Message.decode(line.value).watermarks is None for worker in seen for log in worker.logs for line in log)
    other = hosted(CONFIGS[0], [Row("user0", "0.9", 5, "a")], [])
    same = hosted(CONFIGS[0], [Row("user0", "0.1", 5, "a")], [])
    assert other.seen == same.seen
    assert other.releases != same.releases


def by_filled_cells(outlet, flat):
    """How versions before reckoned with a tick."""
    return 90 + 35 * (len(flat) // 3)


@pytest.mark.parametrize("cfg", [SPREAD, CONFIGS[0], ONE_SAMPLE])
def test_state_and_messages_of_versions_that_cut_otherwise_are_gone_on_with(cfg):
    """A topic may hold both: the same contributions in other messages make the same releases, over restarts too."""
    rows = [Row(f"user{n % 7}", f"0.{n % 10}", n // 4, "abc"[n % 3]) for n in range(160)]
    made = []
    for limit, before in ((MESSAGE_BYTES, None), (500, by_filled_cells)):
        worker = Hosted(compiled(cfg), looks=False)
        for row in rows:
            worker.produce(row.user, row.raw())
        worker.end(END)
        with (
            patch.object(contributions, "MESSAGE_BYTES", limit),
            patch.object(contributions.Outlet, "_partial_cost", before),
        ):
            if before is not None:
                worker.act("bound", 0, 90)
                worker.act("release", 0, 1)  # with some of its messages: the rest are read by its successor
        for action in ("crash_bound", "crash_release"):
            worker.act(action, 0, 0)
        worker.drain()
        made.append((worker.releases, worker.messages))
    assert made[0][0] == made[1][0] != []
    assert made[0][1] != made[1][1]


# ---------------------------------------------------------------- messages stay below what Kafka takes


@in_a_loop
@pytest.mark.parametrize("coordinates", [1, 2, 8])
@pytest.mark.parametrize("merges", [True, False])
def test_a_message_is_smaller_than_a_record_may_be_however_many_digits_its_numbers_have(coordinates, merges):
    """By the most that each number of a row or cell can be; a record of Kafka has at most a million bytes."""
    names = [f"x{index}" for index in range(coordinates)]
    several = {"value": tuple(names), "range": tuple((0, 1) for _ in names)} if coordinates > 1 else {}
    prior = None if merges else ("0.5",) * coordinates if coordinates > 1 else "0.5"
    cfg = config({"algorithm": "naive" if merges else "single-tree", "prior": prior} | several)
    metric = compiled(cfg).metrics[0]
    outlets = Outlets(compiled(cfg))
    out = Outgoing(compiled(cfg), 0, outlets)
    outlet, far = outlets.each[0], 253402300799999999  # the last second of the year 9999
    total = [(1 << 64) - 1] * coordinates
    largest = total if coordinates > 1 else total[0]
    cells = [1 << 8 | 7, (1 << 32) - 1, largest]
    partials = [((far - tick, cells), outlet._partial_cost(cells)) for tick in range(6000 * merges)]
    rows = [(far, "f" * 32, (1 << 32) - 1, 10000, (1 << 32) - 1, largest)] * (12_000 * (not merges))
    with (
        patch.object(contributions, "MESSAGE_BYTES", MESSAGE_BYTES),
        patch.object(outlet, "take", lambda: iter([(0, "m|g", rows, partials)])),
    ):
        messages = out.take(1, 10**13, [0], idle=False)
    assert metric.bounder.parts == merges
    assert len(messages) > 1
    assert all(len(message.encode()) < 1.2 * MESSAGE_BYTES + 1000 < 500_000 for _, message in messages)


def test_the_cost_of_merged_samples_is_that_of_the_most_cells_that_they_can_fill():
    """So a group's tick costs the same whatever the values in it are, up to all parts of all levels."""
    outlet = Outlets(compiled(SPREAD)).each[0]
    alike, apart = [5, 3, 15], [5, 1, 4, 6, 1, 5, 7, 1, 6]
    assert outlet._partial_cost(alike) == outlet._partial_cost(apart)
    assert (
        outlet._partial_cost([5, 64, 0])
        == outlet._partial_cost([5, 10**9, 0])
        < outlet._partial_cost([5, 64, 0, 300, 1, 0])
    )


def test_what_a_dead_letter_holds_is_not_in_how_many_there_are():
    bad = [b'{"u":"user0","t":1,"g":"a","x":%s,"y":null}' % number for number in (b"null", b"[]", b'"7"', b'"9e9"')]
    workers = []
    for number in (bad[0], bad[1]), (bad[2], bad[3]):
        worker = Hosted(compiled(CONFIGS[0]))
        for raw in number:
            worker.produce("user0", raw)
        worker.drain()
        workers.append(worker)
    assert workers[0].seen == workers[1].seen
    assert [orjson.loads(one)["reason"] for one in workers[0].dead_letters] == ["bad-value"] * 2
