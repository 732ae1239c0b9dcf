"""The kernel does what its twin does, record by record: what a partition sends does not show which of them read it."""

import json
import random
import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.stream.file_run import Line
from tests.stream.kernel.lanes import CONFIGS, SUM, Lanes
from tests.stream.kernel.records import ALIKE, FRAGMENTS, GROUPS, SHAPES, USERS, mutated, plain, records, unusual
from tests.stream.simulation import STAMP, config, event
from tests.support.cover import FULL
from tests.support.effort import examples


def lines(raws: list[bytes], stamps: list[int] | None = None) -> list[Line]:
    each = stamps or [STAMP] * len(raws)
    return [Line(offset, raw, timestamp=stamp) for offset, (raw, stamp) in enumerate(zip(raws, each, strict=True))]


def beats(offset: int, time: str) -> Line:
    return Line(offset, None, timestamp=STAMP, headers=(("shoal-beat", time.encode()),))


def test_the_kernel_is_installed_and_knows_these_metrics() -> None:
    for name, cfg in CONFIGS.items():
        assert Lanes.of(cfg).kernel.read_by_kernel == 0, name


@pytest.mark.parametrize("name", CONFIGS)
@examples(60)
@given(
    st.lists(records, max_size=60), st.lists(st.integers(1, 9), min_size=1), st.integers(1, 2), st.integers(0, 2**16)
)
def test_both_lanes_send_the_same(name: str, raws: list[bytes], cuts: list[int], sources: int, seed: int) -> None:
    # given records of all kinds, some of whose users belong to another partition, some of which are stamped long ago
    choose = random.Random(seed)
    lanes = Lanes.of(CONFIGS[name], sources)
    log = lines(raws, [choose.choice([STAMP, STAMP, -1, 0]) for _ in raws])
    log = [Line(2 * line.offset + 1, line.value, timestamp=line.timestamp) for line in log]
    for even in range(len(log)):
        if choose.random() < 0.1:  # time goes on where it goes by beats, too
            log.append(beats(2 * even, f"1970-01-01T00:0{choose.randint(1, 3)}:00Z"))
    log.sort(key=lambda line: line.offset)
    # when they come in batches and transactions of any size, with restarts in between
    while log:
        size = cuts[len(log) % len(cuts)]
        lanes.process(log[:size])
        log = log[size:]
        if choose.random() < 0.5:
            lanes.take()
            if choose.random() < 0.3:
                lanes.restart()
    # then all that leaves is the same
    lanes.take()


def by_name(shape: str) -> str:
    """A shape whose fields have names: those of the plain one have none."""
    fields = iter(("u", "x", "t", "g"))
    return re.sub(r'"?%[sd]"?', lambda _: f"%({next(fields)})s", shape)


@pytest.mark.parametrize("name", ["naive", "groups"])
def test_both_lanes_send_the_same_of_every_unusual_record(name: str) -> None:
    usual = {"u": '"bob"', "x": "0.5", "t": "130", "g": '"a"'}
    for shape in map(by_name, SHAPES if FULL else SHAPES[name == "groups" :: 2]):
        texts = [shape % (usual | {field: fragment}) for field in usual for fragment in FRAGMENTS]
        raws = [text.encode("utf-8", "surrogatepass") for text in texts]
        raws += [raws[0] + wrong for wrong in (b"}", b"x", b"\x00")]
        raws += [b'{"u": "%s", "x": 1, "t": 130, "g": "a"}' % user for user in (b"\xff", b"\xc3", b"\x1f", b"a\xe9b")]
        for raw in raws:
            for stamp in (STAMP, -1):  # with a time of its own a record may be too far ahead
                lanes = Lanes.of(CONFIGS[name])
                lanes.process(lines([event("bob", 0.5, 120, g="a"), raw], [STAMP, stamp]))
                lanes.take()


def test_a_record_is_read_alike_whatever_came_before() -> None:
    """The kernel remembers names of earlier records, as the next one often has the same."""
    # given records that are alike, and the number of those that a new reader takes
    cfg = config({"algorithm": "naive", "value": "v.x", "max_contributions": 2_000})
    taken = 0
    for raw in ALIKE:
        lanes = Lanes.of(cfg)
        lanes.process(lines([raw]))
        taken += lanes.kernel.read_by_kernel or 0
    assert taken > len(ALIKE) / 2
    # when one reader gets each of them twice after each other, so that it remembers either
    lanes = Lanes.of(cfg)
    log = lines([raw for pair in product(ALIKE, ALIKE) for raw in pair for _ in range(2)])
    for line in log:  # one at a time, as the twin also reads what comes after a record that is left to it
        lanes.process([line])
    # then it takes those, and both lanes send the same
    assert lanes.kernel.read_by_kernel == taken * len(log) / len(ALIKE)
    lanes.take()


@pytest.mark.parametrize("name", CONFIGS)
def test_both_lanes_send_the_same_of_users_with_many_samples(name: str) -> None:
    """Few random lists are long enough for blocks and caps."""
    choose = random.Random(name)
    lanes = Lanes.of(CONFIGS[name])
    many = [
        event(choose.choice(USERS[:2]), choose.random(), 100 + n // 10, g=choose.choice(GROUPS)) for n in range(400)
    ]
    log = [Line(offset, raw, timestamp=STAMP) for offset, raw in enumerate(many)]
    while log:
        size = choose.randint(1, 12)
        lanes.process(log[:size])
        lanes.take()
        log = log[size:]


def test_both_lanes_refuse_for_the_first_of_two_reasons() -> None:
    """Random records are rarely late in their unit and in the wrong partition."""
    lanes = Lanes.of(CONFIGS["users of each step"], 2)
    late = [event(user, 1, 100, g="a") for user in USERS]
    lanes.process([beats(0, "1970-01-01T00:02:00Z"), *(Line(n, raw, timestamp=STAMP) for n, raw in enumerate(late, 1))])
    assert lanes.kernel.read_by_kernel
    lanes.take()


def test_both_lanes_tell_the_same_about_a_user() -> None:
    for name, cfg in CONFIGS.items():
        lanes = Lanes.of(cfg)
        lanes.process(lines([event(user, 1, 100, g=group) for user in USERS for group in GROUPS]))
        for twin, kernel in zip(lanes.twin.accounts, lanes.kernel.accounts, strict=True):
            for user in USERS:
                assert list(kernel.of_user(user.encode())) == list(twin.of_user(user.encode())), name


def test_the_kernel_takes_a_fifth_of_what_is_not_plain() -> None:
    """Else the twin would be compared with itself."""
    lanes, seen = Lanes.of(CONFIGS["groups"]), []

    @examples(400)
    @given(st.one_of(unusual(), mutated()))
    def count(raw: bytes) -> None:
        seen.append(raw)
        lanes.process(lines([raw]))

    count()
    assert (lanes.kernel.read_by_kernel or 0) >= len(seen) / 5


@examples(40)
@given(st.lists(plain, min_size=1, max_size=40))
def test_plain_records_are_all_the_kernels(raws: list[bytes]) -> None:
    lanes = Lanes.of(CONFIGS["sharp"])
    lanes.process(lines(raws))
    assert lanes.kernel.read_by_kernel == len(raws)


def test_the_kernel_reads_a_topic_with_many_metrics() -> None:
    # given forty metrics of one topic, each with fields of its own
    many = (
        {"algorithm": "naive", "user": f"u{n}", "value": f"x{n}", "group": f"g{n}", "every": f"{n + 1}s"}
        for n in range(40)
    )
    lanes = Lanes.of(config(*many))
    # when events come that have all of them, and some of which lack one
    fields = [
        {f"{field}{n}": value for n in range(40) for field, value in (("u", f"a{n}"), ("x", 0.5), ("g", "b"))}
        for _ in range(3)
    ]
    del fields[1]["x39"]
    lanes.process(lines([json.dumps({"t": 100 + second} | one).encode() for second, one in enumerate(fields)]))
    # then both lanes send the same, and the kernel has read all but the one that is not plain
    assert lanes.kernel.read_by_kernel == 2
    lanes.take()


def test_what_the_kernel_does_not_know_is_the_twins() -> None:
    for cfg in (
        config({"value": ("x", "y"), "range": ((0, 1), (0, 1))}),
        config(SUM | {"value": "x > 1"}),
        config({"statistic": "mean", "slot": "10s", "max_contributions": 2}),
    ):
        assert Lanes.of(cfg).kernel.read_by_kernel is None
