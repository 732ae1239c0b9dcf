"""What a takeover learns of a log beside the state: which transactions it has, and what they cost."""

import orjson
import pytest
from aiokafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.topic_ids import STATE_KEY
from shoal.agents.worker.outbox import BoundMachine
from shoal.agents.worker.takeover import Loading
from shoal.models.errors import FailStop
from shoal.stream.file_run import Line
from tests.stream.simulation import STAMP, Cluster, config
from tests.support.effort import examples

CFG = config({"algorithm": "full", "max_contributions": 64}, {"algorithm": "naive", "max_contributions": 8})
Log = list[tuple[bytes, bytes]]
Transactions = list[tuple[int, int, int]]


def machine() -> BoundMachine:
    return BoundMachine(KafkaSettings("b:1", "app"), Cluster(CFG, 1, 1).plan, 0)


def written(values: list[float]) -> tuple[Log, Transactions]:
    """A log with a transaction for each event; of each the first record, its offset and cost, as the worker says."""
    writer, log, told = machine(), Log(), Transactions()
    writer.start(0)
    for number, value in enumerate(values):
        raw = orjson.dumps({"u": f"user-{number % 3}", "x": value, "t": 1})
        writer.process([Line(number, raw, timestamp=STAMP)], number + 1)
        outbox = writer.outbox()
        assert outbox is not None
        assert outbox.log is not None
        told.append((outbox.log.first, len(log), outbox.log.cost))
        log += [(key, value or b"") for key, value in outbox.changelog]
    return log, told


def found_in(log: Log) -> Transactions:
    loading = Loading(machine())
    for offset, (key, value) in enumerate(log):
        loading.take(key, value, offset)
    return loading.transactions


@examples(30)
@given(st.data(), st.integers(1, 12))
def test_no_value_decides_what_a_transaction_costs_before_or_after_a_restart(data: st.DataObject, count: int) -> None:
    value = st.sampled_from([0.0, 0.1, 5.0, 9.9, 10.0, 1e300, -1e300])
    logs = [written(data.draw(st.lists(value, min_size=count, max_size=count))) for _ in range(2)]
    assert logs[0][1] == logs[1][1]
    for log, told in logs:
        assert found_in(log) == told


@pytest.mark.parametrize("left", [0, 1])
def test_a_log_of_which_nothing_is_left_is_not_one_that_never_was(left: int) -> None:
    """Regression: all that refused it was the group's offset, which Kafka forgets a week after the last worker."""
    changelog = TopicPartition("app.bound.events.changelog", 0)
    Loading(machine()).done(changelog, (0, 0))
    # when records were written, and all of them are gone, but perhaps the one that names the topic
    loading = Loading(machine())
    for offset in range(left):
        loading.take(STATE_KEY, b"id", 7 + offset)
    with pytest.raises(FailStop, match="its first records were deleted, by retention or by hand"):
        loading.done(changelog, (7, 7 + left))
