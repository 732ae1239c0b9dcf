"""Bound's changelog on a partition of a broker: offsets, markers, aborted transactions, a beginning that is deleted.

Owners come and go, each with what it still deletes or does not know. Whatever happens, what they send together is what
one owner sends that never ends.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, cast

import orjson
import pytest
from aiokafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.kafka import transactions
from shoal.agents.kafka.topic_ids import STATE_KEY
from shoal.agents.kafka.transactions import Trimmer, Writer
from shoal.agents.lane import lane_named
from shoal.agents.worker.takeover import Loading
from shoal.mechanisms.accounts import Accounts
from shoal.mechanisms.slot import accounts as slots
from shoal.mechanisms.stores import packed
from shoal.models.config.file import Config
from shoal.stream.bound import Bound, BoundPartition
from shoal.stream.deltas import rolling, writing
from shoal.stream.deltas.record import PREFIX
from shoal.stream.file_run import Line
from shoal.stream.kernel import stores
from shoal.stream.machine import LogSpan, Machine, Outbox
from shoal.stream.state_mark import MARK
from shoal.stream.topic import TopicPlan
from tests.stream.simulation import STAMP, config, rows_of
from tests.stream.units import Event, plan_of, sums
from tests.support import backends
from tests.support.effort import examples

HAS_KERNEL = backends.KERNEL in backends.BACKENDS
KERNELS: list[Any] = [None, *([lane_named("kernel").module] if HAS_KERNEL else [])]
CHANGELOG = TopicPartition("app.bound.events.changelog", 0)
SLOTTED = {"statistic": "mean", "algorithm": "baseline", "slot": "10s", "group": "g", "epsilon": 9}
CONFIGS: list[Config] = [
    config(SLOTTED | {"max_per_group": 3}),
    config(SLOTTED | {"unit": "user-30s", "max_slots": 2, "max_groups": 2, "lateness": "8s"}, {"algorithm": "naive"}),
    sums(unit="user-10s", group="g", max_groups=2, lateness="12s"),
    config(
        {"algorithm": "naive", "group": "g", "max_groups": 2},
        {"statistic": "sum", "algorithm": "sharp", "users": None, "failure": "0.001", "every": "5s"}
        | {"unit": "user-10s", "max_contributions": 2},
    ),
    config(
        {"relation": "add-remove", "algorithm": None, "users": None, "failure": None, "every": "10s"}
        | {"start": "1970-01-01", "life": "1h", "group": "g", "delta": "1e-6", "max_contributions": 5}
    ),
]
USERS = ["a", "b", "c" * 60, *(f"user-{n}" for n in range(12))]
EVENTS = st.builds(Event, st.sampled_from(USERS), st.integers(0, 9), st.sampled_from("xyz"), st.sampled_from([0, 0.3]))
LOST = "aborted", "forgotten"  # though its owner may have heard that it is committed
TRANSACTIONS = ["committed", "committed", "committed", "committed without a word", "aborted", "forgotten", "idle"]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(TRANSACTIONS), st.lists(EVENTS, min_size=1, max_size=8)),
        st.tuples(st.sampled_from(["restart", "deletes"]), st.just([])),
    ),
    min_size=5,
    max_size=60,
)


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Little at a time, in many records, of which much is deleted."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, size in (
            (rolling, "LEAST", 30), (rolling, "CHUNK", 60), (rolling, "BESIDE", 1), (packed, "CHUNK", 60),
            (stores, "CHUNK", 60), (slots, "CHUNK", 60), (slots, "PIECE_BYTES", 40), (slots, "LARGEST", 20),
            (slots, "KEPT_SAMPLES", 25), (writing, "MOST_BYTES", 150), (transactions, "LEAST_BYTES", 60),
            (transactions, "FRAME", 20),
        ):  # fmt: skip
            patch.setattr(module, name, size)
        yield


class Log:
    """One partition of a topic: records that readers of what is committed see, by offset."""

    def __init__(self) -> None:
        self.records: dict[int, tuple[bytes, bytes]] = {}
        self.first = self.end = 0
        self.deletions: list[int] = []  # that brokers were asked for

    def append(self, entries: Iterable[tuple[bytes, bytes | None]], *, committed: bool) -> int:
        """A transaction and its marker; the offset of its first record."""
        first = self.end
        for key, value in entries:
            if committed:
                self.records[self.end] = key, value or b""
            self.end += 1
        self.end += 1
        return first

    def delete(self) -> None:
        """Delete what was asked for, perhaps by owners of long ago."""
        for before in self.deletions:
            assert before <= self.end
            self.first = max(self.first, before)
        self.deletions.clear()
        for gone in [offset for offset in self.records if offset < self.first]:
            del self.records[gone]


class Owner:
    """A machine with what it knows of the log."""

    def __init__(self, log: Log, plan: TopicPlan, kernel: Any) -> None:
        self.machine = BoundPartition(plan, 0, kernel=kernel)
        loading = Loading(cast(Machine, self.machine))
        for offset, (key, value) in sorted(log.records.items()):
            loading.take(key, value, offset)
        loading.done(CHANGELOG, (log.first, log.end))
        assert (loading.named is None) == loading.is_empty
        if self.machine.next_offset is None:
            self.machine.start(0)
        self.log, self.changelog_began, self._last = log, 0, log.end - 1
        self.trimmer = Trimmer(cast(Writer, self))
        self.trimmer.restored(loading.transactions)

    async def delete_changelog(self, before: int) -> None:
        self.log.deletions.append(before)

    async def write(self, bound: Bound, outcome: str, last_batch: int) -> None:
        """Write a transaction, whose last batch begins so many records before its end, for all that the owner hears."""
        entries = [(STATE_KEY, b"id"), *bound.changelog]
        first = self.log.append(entries, committed=outcome not in LOST)
        if outcome in ("committed", "forgotten", "idle"):
            known = first if last_batch % 3 else -1  # the broker's first answer was lost
            self.changelog_began = max(self._last + 1, known)
            self._last = first + len(entries) - min(len(entries), 1 + last_batch)
            span = LogSpan(bound.first_record, bound.needs, bound.cost)
            self.trimmer.committed(Outbox(bound.next_offset, log=span))
            await asyncio.sleep(0)


def said(bound: Bound) -> list[Any]:
    """What a transaction sends, in any order."""
    rows = [(home, key, repr(row)) for home, message in bound.messages for key, row in rows_of(message)]
    return [sorted(rows), sorted(bound.dead_letters), bound.next_offset]


def held(accounts: list[Accounts]) -> list[Any]:
    """All that accounts have of everybody."""
    return [sorted(map(repr, one.of_user(user.encode()))) for one in accounts for user in USERS]


@pytest.mark.parametrize("cfg", CONFIGS)
@examples(80)
@given(st.data(), STEPS)
def test_owners_that_come_and_go_send_what_one_sends_that_stays(cfg: Config, data: st.DataObject, steps: Any) -> None:
    async def go() -> None:
        log, plan, offset, time = Log(), plan_of(cfg), 0, 0
        one = BoundPartition(plan, 0)  # that never ends, nor is given back
        one.start(0)
        owner = Owner(log, plan, data.draw(st.sampled_from(KERNELS)))
        for number, (what, events) in enumerate(steps):
            if what == "deletes":
                log.delete()
                continue
            if what != "restart":
                time += number % 5
                raws = [Event(e.user, time + e.time, e.group, e.value).raw() for e in events]
                records = [Line(offset + n, raw, timestamp=STAMP) for n, raw in enumerate(raws)]
                for machine in (owner.machine, one) if what not in LOST else (owner.machine,):
                    machine.process(records, offset + len(records))
                    if what == "idle":
                        machine.idle(1)
                taken = owner.machine.take(0)
                assert taken is not None
                await owner.write(taken, what, number % 4)
                if what not in LOST:
                    offset += len(records)
                    due = one.take(0)
                    assert due is not None
                    assert said(taken) == said(due)
                    assert held(owner.machine.accounts) == held(one.accounts)
            if what in ("restart", *LOST, "committed without a word"):
                owner = Owner(log, plan, data.draw(st.sampled_from(KERNELS)))
                assert held(owner.machine.accounts) == held(one.accounts)
        log.delete()
        assert held(Owner(log, plan, None).machine.accounts) == held(one.accounts)

    asyncio.run(go())


def test_what_is_deleted_here_is_deleted_often_and_in_the_middle_of_rounds() -> None:
    """That the histories above are what they say: of most transactions nothing is left, and of the rest not all."""

    async def go() -> Log:
        log, plan = Log(), plan_of(CONFIGS[0])
        owner = Owner(log, plan, None)
        for number in range(400):
            raw = Event(USERS[number % len(USERS)], number // 40, "xyz"[number % 3], 0.3).raw()
            owner.machine.process([Line(number, raw, timestamp=STAMP)], number + 1)
            taken = owner.machine.take(0)
            assert taken is not None
            await owner.write(taken, "committed", number % 4)
            log.delete()
        return log

    log = asyncio.run(go())
    marks = [orjson.loads(value) for key, value in log.records.values() if key == MARK]
    numbers = [int.from_bytes(key[len(PREFIX) :], "big") for key, _ in log.records.values() if key.startswith(PREFIX)]
    assert log.first > 0.8 * log.end
    assert len(marks) > 3
    assert 1 < min(numbers) <= marks[-1]["needs"] < max(numbers)
