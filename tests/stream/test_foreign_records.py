"""What stands in the contributions topic and is not shoal's costs nothing, and stops nobody."""

from types import SimpleNamespace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.errors import FailStop
from shoal.models.records import Message
from shoal.stream.file_run import Line
from shoal.stream.foreign_records import Strays, read_message
from shoal.stream.release import ReleasePartition
from tests.stream.simulation import Cluster, config, event
from tests.support.cover import in_a_loop
from tests.support.effort import examples

MESSAGE = Message(
    "events", 2, 5, 77, 1_000, {"t|0": 4}, True, {"m/1|": [(1, "ab", 1, 0, 1, 5)]}, {"m/1|": [(0, [0, 1, 2])]}
)
leaves = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(-9, 9) | st.sampled_from("abt|")
json = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("tpnowmics"), inner))


def record(value: bytes | None, key: bytes | None = None) -> SimpleNamespace:
    return SimpleNamespace(key=key, value=value, offset=9)


def read(value: bytes | None, key: bytes | None = None) -> tuple[Message | None, int]:
    strays = Strays()
    message = read_message(record(value, key), "contributions partition 0", strays)
    assert strays.last == (9 if strays.count else -1)
    return message, strays.count


def test_a_message_is_read_whatever_its_key() -> None:
    for key in (None, b"events|2", b"k"):
        message, strays = read(MESSAGE.encode(), key)
        assert message is not None
        assert (message.encode(), strays) == (MESSAGE.encode(), 0)


@examples(15)
@given(st.none() | st.binary() | json.map(orjson.dumps), st.none() | st.binary(max_size=4).map(lambda key: key + b"|x"))
def test_anything_else_is_left_out_and_counted(value: bytes | None, key: bytes | None) -> None:
    assert read(value, key) == (None, 1)


@examples(15)
@given(st.sampled_from("tpnowmics"), leaves)
def test_a_message_with_a_field_of_another_kind_is_none(field: str, value: object) -> None:
    fields = orjson.loads(MESSAGE.encode())
    same_kind = type(fields[field]) is type(value) or (field == "m" and value is None)
    fields[field] = value
    raw = orjson.dumps(fields)
    if same_kind and not (field == "p" and isinstance(value, int) and value < 0):
        assert read(raw)[0] is not None
        return
    assert read(raw) == (None, 1)
    with pytest.raises(FailStop, match="contributions partition 0, offset 9: not a message that this version"):
        read(raw, b"events|2")


@in_a_loop
@pytest.mark.parametrize(
    "inner",
    [
        {"c": {"m/1|": [[1]]}},
        {"c": {"m/1|": 5}},
        {"s": {"m/1|": [[0, [1]]]}},
        {"s": {"m/1|": [[0]]}},
        {"m": {"t": "x"}},
    ],
)
def test_rows_of_another_form_make_it_none(inner: dict[str, object]) -> None:
    assert read(orjson.dumps(orjson.loads(MESSAGE.encode()) | inner)) == (None, 1)


def test_strays_between_messages_change_no_release() -> None:
    # given a stream, and the same with records of somebody else in between
    cluster = Cluster(config({}), 2, 1)
    cluster.produce(event(f"u{n % 4}", 0.5, n) for n in range(60))
    cluster.end_last_ticks()
    for source in (0, 1):
        cluster.bound(source, 100)
    log = cluster.homes[0].log

    def releases(lines: list[Line]) -> tuple[list[bytes], int]:
        machine = ReleasePartition([cluster.plan], 0, idle_after=1)
        machine.start(0)
        machine.process([Line(n, line.value) for n, line in enumerate(lines)], len(lines))
        machine.work()
        taken = machine.take()
        return [release.value for release in taken.releases] if taken else [], machine.strays.count

    expected, none = releases(log)
    assert (len(expected) > 3, none) == (True, 0)
    strayed = [line for one in log for line in (Line(0, b"hello"), one, Line(0, None), Line(0, b'{"t": 1}'))]
    assert releases(strayed) == (expected, 3 * len(log))
