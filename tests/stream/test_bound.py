"""Bound, rule by rule: what is accepted, when it counts, whom it belongs to, what survives."""

import zlib
from collections import Counter

import orjson
import pytest

from shoal.models.errors import FailStop
from shoal.models.records import Message
from shoal.stream.bound import Bound, BoundPartition
from shoal.stream.contributions import ROWS
from shoal.stream.deltas.record import decode, digest_of, encode, key_of
from shoal.stream.file_run import Line
from shoal.stream.state_mark import MARK
from shoal.stream.topic import plan_topic
from tests.stream.simulation import SECRET, STAMP, apply, config, event
from tests.support.cover import in_a_loop

NAIVE = {"algorithm": "naive", "every": "contribution"}


def bound(cfg, *, partition=0, sources=1, homes=1, log_id="log", **options) -> BoundPartition:
    plan = plan_topic(cfg, "events", SECRET, source_partitions=sources, contributions_partitions=homes)
    machine = BoundPartition(plan, partition, log_id=log_id, **options)
    machine.start(0)
    return machine


def feed(machine: BoundPartition, *events: bytes | None, stamp: int = STAMP, headers=()) -> None:
    offset = machine.next_offset or 0
    lines = [Line(offset + i, raw, timestamp=stamp, headers=headers) for i, raw in enumerate(events)]
    machine.process(lines, offset + len(lines))


def sent(machine: BoundPartition) -> list[Message]:
    found = machine.take(wall=1)
    return [] if found is None else [message for _, message in found.messages]


def watermarks(message: Message) -> list[int | None]:
    return list((message.watermarks or {}).values())


def effective_times(machine: BoundPartition) -> list[int]:
    return [row[0] // 10**6 for message in sent(machine) for rows in message.contributions.values() for row in rows]


def reasons(machine: BoundPartition) -> list[str]:
    return [orjson.loads(letter)["reason"] for letter in taken(machine).dead_letters]


def taken(machine: BoundPartition) -> Bound:
    found = machine.take(wall=1)
    assert found is not None
    return found


def test_effective_time_is_never_before_the_watermark_less_lateness():
    machine = bound(config(NAIVE | {"lateness": "5s"}))
    feed(machine, *(event("a", 1, time) for time in (100, 110, 107, 103, 111)))
    assert effective_times(machine) == [100, 110, 107, 105, 111]


def test_late_events_are_dropped_where_the_metric_says_so():
    machine = bound(config(NAIVE | {"late": "drop"}))
    feed(machine, *(event("a", 1, time) for time in (100, 110, 109, 110)))
    found = taken(machine)
    assert [orjson.loads(letter)["reason"] for letter in found.dead_letters] == ["late"]
    assert [row[0] // 10**6 for row in found.messages[0][1].contributions["m0/1|"]] == [100, 110, 110]


def test_a_refused_record_still_moves_the_clock():
    machine = bound(config(NAIVE))
    feed(machine, event("a", 1, 100), orjson.dumps({"u": "a", "x": "text", "t": 200}), event("a", 1, 150))
    assert effective_times(machine) == [100, 200]


def test_a_time_far_ahead_of_its_record_is_refused_and_moves_nothing():
    machine = bound(config(NAIVE | {"max_ahead": "10s"}))
    feed(machine, event("a", 1, 100), event("a", 1, 111), event("a", 1, 105), stamp=100_000)
    assert effective_times(machine) == [100, 105]
    feed(machine, event("a", 1, 106), stamp=95_000)
    assert reasons(machine) == ["too-far-ahead"], "progress is 105, the record's own stamp is 95"


def test_the_first_event_may_be_as_far_ahead_of_its_record_as_any():
    machine = bound(config(NAIVE | {"max_ahead": "10s"}))
    feed(machine, event("a", 1, 111), stamp=100_000)
    assert reasons(machine) == ["too-far-ahead"]


@in_a_loop
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"nonsense", "not-json"),
        (b"[]", "not-json-object"),
        (None, "not-json"),
        (b'{"x": 1, "t": 1}', "no-user"),
        (b'{"u": "", "x": 1, "t": 1}', "bad-user"),
        (b'{"u": "a", "g": 1, "t": 1}', "no-value"),
        (b'{"u": "a", "g": 1, "x": "1", "t": 1}', "bad-value"),
        (b'{"u": "a", "g": 1, "x": null, "t": 1}', "bad-value"),
        (b'{"u": "a", "g": 1, "x": true, "t": 1}', "bad-value"),
        (b'{"u": "a", "x": 1}', "no-time"),
        (b'{"u": "a", "x": 1, "t": 1e300}', "bad-time"),
        (b'{"u": "a", "x": 1, "t": 1}', "no-group"),
        (b'{"u": "a", "x": 1, "t": 1, "g": 1.5}', "bad-group"),
    ],
)
def test_bad_input_is_a_dead_letter_with_reason_and_origin(raw, reason):
    machine = bound(config(NAIVE | {"group": "g"}), partition=3, checks_partition=False)
    machine.next_offset = 41
    feed(machine, raw)
    found = taken(machine)
    letter = orjson.loads(found.dead_letters[0])
    assert (letter["reason"], letter["metric"], letter["topic"], letter["partition"], letter["offset"]) == (
        reason, "m0", "events", 3, 41,
    )  # fmt: skip
    assert letter["record"] == (None if raw is None else raw.decode())
    assert machine.counters == Counter({f"dead_letters.m0.{reason}": 1})


def test_dead_letters_may_be_counted_only():
    machine = bound(config(NAIVE, dead_letters=False))
    feed(machine, b"nonsense")
    found = taken(machine)
    assert found.dead_letters == []
    assert machine.counters["dead_letters.m0.not-json"] == 1


def test_what_breaks_a_reader_is_bad_input_and_not_the_end_of_the_stream(monkeypatch):
    def broken(*_: object) -> None:
        raise RuntimeError("a bug in reading")

    for name in (
        "models.events.orjson.loads", "models.events.time_of_number", "models.events.name_bytes",
        "stream.topic.read_value",
    ):  # fmt: skip
        machine = bound(config(NAIVE))
        with monkeypatch.context() as patch:
            patch.setattr(f"shoal.{name}", broken)
            feed(machine, b'{"u": 7, "x": 1, "t": 100}')
        assert reasons(machine) == ["error"], name
        assert machine.users == 0


@in_a_loop
@pytest.mark.parametrize("number", ["1e400", "-1e400", "9" * 5000, "1e-400"])
def test_numbers_outside_the_range_however_large_are_clipped(number):
    machine = bound(config(NAIVE))
    feed(machine, b'{"u": "a", "t": 100, "x": %s}' % number.encode())
    (message,) = sent(machine)
    total = message.contributions["m0/1|"][0][5]
    assert total == (16 if number in ("1e400", "9" * 5000) else 0)


def test_a_user_must_be_in_the_partition_that_the_partitioner_gives():
    cfg = config(NAIVE)
    machines = [bound(cfg, partition=index, sources=4) for index in range(4)]
    for machine in machines:
        feed(machine, event("anna", 1, 100))
    assert sorted(machine.users for machine in machines) == [0, 0, 0, 1]
    counted = sum((machine.counters for machine in machines), Counter())
    assert counted == Counter({"dead_letters.m0.wrong-partition": 3})


def test_crc32_partitions_are_those_of_librdkafka():
    cfg = config(NAIVE, partitioner="crc32")
    plan = bound(cfg).plan
    assert [plan.partition_of(user, 1000) for user in (b"anna", b"")] == [zlib.crc32(b"anna") % 1000, 0]


def test_samples_over_the_cap_are_counted_and_nothing_else():
    machine = bound(config(NAIVE | {"max_contributions": 2}))
    feed(machine, *(event("a", 1, 100 + i) for i in range(5)))
    assert effective_times(machine) == [100, 101]
    assert machine.counters == Counter({"over_cap": 3})


def test_further_groups_of_a_user_are_left_out_by_arrival():
    machine = bound(config(NAIVE | {"group": "g", "max_groups": 2}))
    feed(machine, *(event("a", 1, 100 + i, g=group) for i, group in enumerate("xyzxzy")))
    feed(machine, event("b", 1, 200, g="z"))
    (message,) = sent(machine)
    assert {key: len(rows) for key, rows in message.contributions.items()} == {"m0/1|x": 2, "m0/1|y": 2, "m0/1|z": 1}
    assert machine.counters == Counter({"groups_left_out": 2})


def test_user_and_group_are_never_confused():
    machine = bound(config(NAIVE | {"group": "g", "max_per_group": 1}))
    feed(machine, event("ab", 1, 100, g="c"), event("a", 1, 101, g="bc"))
    assert machine.users == 2
    assert machine.counters["over_cap"] == 0


def test_a_clock_record_moves_the_clock_and_is_nothing_else():
    machine = bound(config({"every": "10s"}))
    feed(machine, None, headers=(("other", b""), ("shoal-clock", b"1970-01-01T00:05:00Z")))
    (message,) = sent(machine)
    assert watermarks(message) == [300_000_000]
    assert not machine.counters
    feed(machine, None, headers=(("shoal-clock", b"1970-01-01T00:01:00Z"),))
    assert list(taken(machine).changelog) != []
    assert machine.watermark(0) == 300_000_000, "a clock never goes back"


@in_a_loop
@pytest.mark.parametrize("name", ["shoal-clock", "shoal-beat"])
@pytest.mark.parametrize("time", [b"soon", b"\xff", b"9999-12-31T00:00:00Z", b"", None])
def test_a_clock_record_without_a_time_is_bad_input(name, time):
    machine = bound(config({"every": "10s"}))
    feed(machine, None, headers=((name, time),))
    assert reasons(machine) == ["not-json"]


def test_the_clock_is_sent_when_it_enters_a_new_step_of_any_cadence():
    machine = bound(config({"every": "10s"}, {"every": "15s"}), homes=2)
    feed(machine, event("a", 1, 100))
    assert len(sent(machine)) == 1
    feed(machine, orjson.dumps({"t": 104, "u": "a"}))
    assert sent(machine) == []
    feed(machine, orjson.dumps({"t": 105, "u": "a"}))
    assert [watermarks(message) for message in sent(machine)] == [[105_000_000]]


def test_an_idle_partition_says_so_where_somebody_waits_for_clocks():
    machine = bound(config({"every": "10s"}))
    machine.idle(wall=5)
    (message,) = sent(machine)
    assert message.idle
    assert watermarks(message) == [None]
    assert sent(machine) == []
    silent = bound(config(NAIVE))
    silent.idle(wall=5)
    assert silent.take(6) is None


def test_an_event_ends_idleness():
    machine = bound(config({"every": "10s"}))
    machine.idle(wall=5)
    feed(machine, event("a", 1, 100))
    assert not any(message.idle for message in sent(machine))


def test_a_metric_without_a_time_field_takes_the_records_timestamp():
    machine = bound(config(NAIVE | {"time": None}))
    feed(machine, b'{"u": "a", "x": 1}', stamp=123_000)
    assert effective_times(machine) == [123]


def test_large_transactions_are_cut_into_messages_numbered_in_sequence():
    machine = bound(config(NAIVE | {"max_contributions": 100_000}, NAIVE | {"max_contributions": 100_000}))
    feed(machine, *(event("a", 1, 100) for _ in range(2 * ROWS + 1)))
    messages = sent(machine)
    assert [message.number for message in messages] == [1, 2, 3, 4, 5, 6]
    rows = [row for message in messages for row in message.contributions.get("m1/1|", ())]
    assert [row[2] for row in rows] == list(range(1, 2 * ROWS + 2))
    assert all(len(message.encode()) < 900_000 for message in messages)


def test_partials_of_a_tick_carry_count_and_sum_and_no_pseudonym():
    machine = bound(config({"algorithm": "naive", "every": "10s"}))
    feed(machine, *(event(user, 1, 100) for user in "abc"))
    (message,) = sent(machine)
    assert message.contributions == {}
    assert message.partials == {"m0/1|": [(100_000_000, [0, 3, 48])]}


def restored(machine: BoundPartition, changelog: dict[bytes, bytes], **options) -> BoundPartition:
    other = BoundPartition(machine.plan, machine.partition, **{"log_id": "log"} | options)
    other.restore(changelog)
    return other


def committed(cfg=None) -> tuple[BoundPartition, dict[bytes, bytes]]:
    machine = bound(cfg or config({"group": "g"}))
    feed(machine, event("a", 1, 100, g="x"))
    changelog: dict[bytes, bytes] = {}
    apply(changelog, taken(machine).changelog)
    return machine, changelog


def test_state_survives_and_an_empty_changelog_is_no_state():
    machine, changelog = committed()
    again = restored(machine, changelog)
    assert (again.next_offset, again.users, again.watermark(0)) == (1, 1, 100_000_000)
    assert again.count("m0", "a", "x") == 1
    assert again.count("m0", "a", "y") is None
    assert again.count("m0", "a") is None
    assert again.count("unknown", "a", "x") is None
    fresh = BoundPartition(machine.plan, 0)
    fresh.restore({})
    assert fresh.next_offset is None
    assert fresh.take(1) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log": "other"}, "belongs to audit log other"),
        ({"numbers": [0, 0]}, "knows 2 contributions partitions, there are 1"),
        ({"starts": {"gone/1": 0}}, "metric gone/1 is in use, this configuration lacks it"),
    ],
)
def test_state_that_is_not_ours_is_refused(change, message):
    machine, changelog = committed()
    changelog[b"\x00mark"] = orjson.dumps(orjson.loads(changelog[b"\x00mark"]) | change)
    with pytest.raises(FailStop, match=message):
        restored(machine, changelog)


def test_accounts_without_a_mark_are_refused():
    machine, changelog = committed()
    del changelog[b"\x00mark"]
    with pytest.raises(FailStop, match="no mark"):
        restored(machine, changelog)


def test_a_retired_metric_leaves_its_state_behind():
    machine, changelog = committed(config({"group": "g"}, {"every": "1s"}))
    plan = plan_topic(
        config({"group": "g"}), "events", SECRET, source_partitions=1, contributions_partitions=1,
        retired=frozenset({"m1/1"}),
    )  # fmt: skip
    again = BoundPartition(plan, 0, log_id="log")
    again.restore(changelog)
    assert again.users == 1


def test_a_retired_metric_never_returns_to_a_partition_that_went_on_without_it():
    # given a newer worker that has gone on without a metric that was retired
    cfg, newer = config({"group": "g"}, {"every": "1s"}), config({"group": "g"})
    machine, changelog = committed(cfg)
    plan = plan_topic(
        newer, "events", SECRET, source_partitions=1, contributions_partitions=1, retired=frozenset({"m1/1"})
    )
    went_on = BoundPartition(plan, 0, log_id="log")
    went_on.restore(changelog)
    for _ in range(2):  # also the second one of these knows of it
        feed(went_on, event("a", 1, 100, g="x"))
        apply(changelog, taken(went_on).changelog)
        went_on = restored(went_on, changelog)
    # when one with the older file takes the partition over, then it refuses, whether or not accounts are left
    for left in (changelog, {key: value for key, value in changelog.items() if key != key_of(1)}):
        with pytest.raises(FailStop, match="metric m1/1 was retired, and a newer worker has written on without its"):
            restored(machine, left)


def test_a_clock_keeps_its_promise_while_no_metric_has_it():
    # given two clocks, of which one has no metric for a while, and then that of a newer version
    late: dict[str, object] = {"name": "late", "every": "1s", "lateness": "5s"}
    prompt: dict[str, object] = {"name": "prompt", "every": "1s"}
    steps: tuple[tuple[list[dict[str, object]], list[str], int], ...] = (
        ([late, prompt], [], 100),
        ([prompt], ["late/1"], 120),
        ([late | {"version": 2}, prompt], ["late/1"], 96),
    )
    changelog: dict[bytes, bytes] = {}
    promises: list[dict[str, int | None]] = []
    for metrics, retired, time in steps:
        plan = plan_topic(
            config(*metrics), "events", SECRET, source_partitions=1, contributions_partitions=1,
            retired=frozenset(retired),
        )  # fmt: skip
        machine = BoundPartition(plan, 0, log_id="log")
        machine.restore(changelog)
        if machine.next_offset is None:
            machine.start(0)
        feed(machine, event("a", 1, time))
        machine.idle(wall=1)
        found = taken(machine)
        apply(changelog, found.changelog)
        promises.append(found.messages[-1][1].watermarks or {})
    # then it goes on from where it was, for ticks before that may be closed
    late_label, prompt_label = promises[0]
    assert promises == [
        {late_label: 95_000_000, prompt_label: 100_000_000},
        {prompt_label: 120_000_000},
        {late_label: 95_000_000, prompt_label: 120_000_000},
    ]


def test_accounts_that_the_mark_does_not_know_are_refused():
    # given a state of which nobody noted that a metric was retired, and which has some of its accounts
    machine, changelog = committed(config({"group": "g"}, {"every": "1s"}))
    mark = orjson.loads(changelog[MARK])
    mark["starts"].pop("m1/1"), mark["accounts"].pop("m1/1")
    raw = orjson.dumps(mark)
    record = decode(key_of(1), changelog[key_of(1)])
    _, value = encode(1, record.before, digest_of(raw), [one.encode() for one in record.sections()])
    with pytest.raises(FailStop, match="metric m1/1 was retired"):
        restored(machine, {key_of(1): value, MARK: raw})
