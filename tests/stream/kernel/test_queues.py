"""What metrics have to send, kept by the kernel and by its twin: the same messages, byte for byte."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.statistic import Block
from shoal.models.records import Message
from shoal.stream.contributions import MESSAGE_BYTES, ROWS, Outgoing, Outlets
from shoal.stream.file_run import FileRun
from shoal.stream.kernel.queues import Queues
from shoal.stream.topic import TopicPlan, plan_topic
from tests.stream.kernel.lanes import CONFIGS, KERNEL
from tests.stream.kernel.test_reader import lines
from tests.stream.simulation import SECRET, config, event
from tests.support.cover import in_a_loop
from tests.support.effort import examples

HOMES = 3
Sent = tuple[int, str | None, int, bytes, Block]  # number of the metric, group, effective time, user, block

LARGEST = 2**64 - 1
AWKWARD = ["", '"', "\\", "\b\f\n\r\t", "\x00\x1f\x7f", "ü", "名前", "😀", "\u2028", "/", "a|b", "</", "\ufeff", "é"]
texts = st.one_of(st.sampled_from(AWKWARD), st.text(max_size=6), st.sampled_from("abc"))
totals = st.one_of(st.integers(0, 1000), st.sampled_from([2**63 - 1, 2**63, LARGEST, -1, -(2**63)]))
groups = texts.filter(bool).map(lambda text: text.encode("utf-8", "replace").decode())
rows = st.builds(Block, st.integers(1, 2**32), st.integers(0, 60), st.integers(1, 2**31), totals, st.none())
singles = st.builds(
    Block, st.just(1), st.integers(0, 9), st.just(1), st.integers(0, 2**32), st.one_of(st.none(), st.integers(0, 40))
)
sent = st.tuples(st.integers(0, 1), groups, st.integers(-(10**9), 2**55), texts.map(str.encode), rows | singles)


def plan_of(*metrics: dict[str, Any]) -> TopicPlan:
    cfg = config(*metrics)
    return plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=HOMES)


# one that merges samples into cells, and one that sends rows alone
PLAN = plan_of({"algorithm": "sharp", "max_contributions": 128, "group": "g"}, {"epsilon": 4000, "group": "g"})


class Both:
    """Both lanes of one source partition's outgoing messages."""

    def __init__(self, plan: TopicPlan = PLAN) -> None:
        waiting = Outlets(plan), Queues(KERNEL, plan)
        self.lanes = [(one.sends, Outgoing(plan, 0, one)) for one in waiting]

    def send(self, blocks: list[Sent]) -> None:
        for sends, _ in self.lanes:
            for metric, group, effective, user, block in blocks:
                sends[metric](group, effective, user, block)

    def take(self, *, idle: bool = False) -> list[tuple[int, Message]]:
        """The same messages of both."""
        taken = [outgoing.take(7, 8, [None] * len(PLAN.clocks), idle=idle) for _, outgoing in self.lanes]
        twin, kernel = ([(home, message.encode()) for home, message in one] for one in taken)
        assert kernel == twin
        return taken[1]


@examples(200)
@given(st.lists(st.lists(sent, max_size=12), max_size=3), st.booleans())
def test_both_lanes_write_the_same(transactions: list[list[Sent]], idle: bool) -> None:
    both = Both()
    for blocks in transactions:
        both.send(blocks)
        both.take(idle=idle)


@pytest.mark.parametrize("groups", [1, 50, 3000])
def test_messages_are_cut_in_the_same_places(groups: int) -> None:
    """Into rows of few groups and many, each with few rows or with more than a message has room for."""
    choose = random.Random(groups)
    both = Both()
    for _ in range(2):
        blocks: list[Sent] = []
        for group in range(groups):
            name = choose.choice(AWKWARD) * choose.randint(1, 3) + str(group)
            for _ in range(choose.randint(1, 60_000 // groups)):
                if choose.random() < 0.6:
                    block = Block(1, choose.randint(0, 60), 1, choose.randint(0, LARGEST))
                else:
                    block = Block(1, choose.randint(0, 7), 1, choose.randint(0, 2**32), choose.randint(0, 63))
                blocks.append((choose.randint(0, 1), name, choose.randint(0, 9) * 10**6, b"user", block))
        choose.shuffle(blocks)
        both.send(blocks)
        messages = both.take()
        assert len(messages) > HOMES  # so they are cut
        assert all(len(message.encode()) < 1.2 * MESSAGE_BYTES + 1000 for _, message in messages)
        last = dict(messages)
        assert [message for _, message in messages if message.watermarks is not None] == list(last.values())


@in_a_loop
@pytest.mark.parametrize("rows", [ROWS - 1, ROWS, ROWS + 1, 2 * ROWS, 2 * ROWS + 1])
@pytest.mark.parametrize("after", [0, 1])
def test_as_many_rows_as_a_message_has_room_for(rows: int, after: int) -> None:
    both = Both()
    both.send([(1, "a", 0, b"u", Block(1, 0, 1, 0))] * rows + [(1, "b", 0, b"u", Block(1, 0, 1, 0))] * after)
    both.take()


def test_a_home_that_has_nothing_hears_of_a_clock_all_the_same() -> None:
    both = Both()
    both.send([(0, "a", 0, b"u", Block(1, 0, 1, 0))])
    assert [home for home, _ in both.take(idle=True)] == list(range(HOMES))
    assert both.take() == []


@pytest.mark.parametrize("total", [2**64, -(2**63) - 1])
def test_a_total_that_json_has_no_integer_for_is_refused_by_both(total: int) -> None:
    both = Both()
    both.send([(1, "a", 0, b"u", Block(1, 0, 1, total))])
    for _, outgoing in both.lanes:
        with pytest.raises(TypeError, match="Integer exceeds 64-bit range"):
            outgoing.take(7, 8, [None], idle=False)[0][1].encode()


def test_a_file_run_makes_the_same_of_messages_that_the_kernel_wrote() -> None:
    raws = [event(user, value, at, g="ab"[at % 2]) for at in range(100, 160) for user in "pq" for value in (0, 1)]
    for name, cfg in CONFIGS.items():
        plan = plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=1)
        twin, kernel = (
            [(out.releases, out.activations) for out in FileRun(plan, lane).outputs(lines(raws))]
            for lane in (None, KERNEL)
        )
        assert kernel == twin, name
