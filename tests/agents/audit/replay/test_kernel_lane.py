"""Rows that the kernel wrote have the fingerprints of the same rows, read and written again by the twin."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.audit.replay.contributions import SentRows
from shoal.models.records import Message, Written
from tests.stream.kernel.lanes import KERNEL
from tests.stream.kernel.test_queues import PLAN, Both, sent
from tests.support.effort import examples

WHEN = 50  # microseconds: of a watermark, before and after which rows came


def kept_of(rows: SentRows) -> Any:
    """All that is kept, by key."""
    prints = {key: (group.blocks.print, group.partials.print, group.samples) for key, group in rows.groups.items()}
    return rows.messages, prints, rows.came_late


@examples(100)
@given(st.lists(st.lists(sent, max_size=20), min_size=1, max_size=4), st.integers(-(10**9), 2**55))
def test_rows_are_taken_as_they_were_written(transactions: list[Any], watermark: int) -> None:
    both = Both()
    written, read = SentRows(PLAN, KERNEL), SentRows(PLAN)
    label = PLAN.clocks[0].label
    for blocks in transactions:
        both.send(blocks)
        for _, raw in both.take():
            message = Message.decode(raw.encode())
            message.watermarks = {label: watermark}
            read.add(message)
            parts = (Written[Any](orjson.dumps(part)) for part in (message.contributions, message.partials))
            contributions, partials = parts
            fields = message.topic, message.partition, message.number, 0, 0, message.watermarks, False
            written.add(Message(*fields, contributions, partials))
    assert kept_of(written) == kept_of(read)


@examples(200)
@given(st.lists(sent, min_size=1, max_size=6), st.data())
def test_only_what_the_twin_would_write_again_is_taken(blocks: list[Any], data: st.DataObject) -> None:
    # given rows as they were written, with one byte more, less or changed
    both = Both()
    both.send(blocks)
    messages = (Message.decode(message.encode()) for _, message in both.take())
    raw = data.draw(st.sampled_from([orjson.dumps(message.contributions) for message in messages]))
    at, byte = data.draw(st.integers(0, len(raw))), bytes([data.draw(st.sampled_from(b'0159-+.e"\\,:[]{} af\n\x00'))])
    for changed in (raw, raw[:at] + raw[at + 1 :], raw[:at] + byte + raw[at:], raw[:at] + byte + raw[at + 1 :]):
        runs = KERNEL.runs(changed)
        # then they are taken only if the twin would write the same again, and with what the twin finds in them
        for _, begin, end, samples, earliest in runs or ():
            rows = orjson.loads(b"[%b]" % changed[begin:end])
            assert orjson.dumps(rows) == b"[%b]" % changed[begin:end]
            assert (samples, earliest) == (sum(row[4] for row in rows), min(row[0] for row in rows))


def test_most_rows_are_taken() -> None:
    """Else the twin would be compared with itself."""
    raw = b'{"m/1|a":[[5,"f00d",1,0,1,7],[3,"",2,1,2,-9]],"m/1|\\"":[[0,"a",1,0,4,0]]}'
    (one, other) = KERNEL.runs(raw)
    assert [raw[run[1] : run[2]] for run in (one, other)] == [b'[5,"f00d",1,0,1,7],[3,"",2,1,2,-9]', b'[0,"a",1,0,4,0]']
    assert [(orjson.loads(run[0]), *run[3:]) for run in (one, other)] == [("m/1|a", 3, 3), ('m/1|"', 4, 0)]
    assert KERNEL.runs(b"{}") == []
    for written in (b'5, "f00d",1,0,1,7', b'05,"f00d",1,0,1,7', b'5,"f00d",1,0,1,7.0', b'5,"f00d",1,0,1,[7]'):
        assert KERNEL.runs(b'{"m/1|a":[[%b]]}' % written) is None


@pytest.mark.parametrize("times", [(3, 5), (5, 3)])
def test_the_kernel_finds_the_earliest_time_of_rows_in_any_order(times: tuple[int, int]) -> None:
    rows = ",".join(f'[{time},"f00d",{number},0,1,7]' for number, time in enumerate(times, 1))
    (run,) = KERNEL.runs(f'{{"m/1|a":[{rows}]}}'.encode())
    assert run[-1] == 3
