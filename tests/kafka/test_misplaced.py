"""Records that are keyed by something else than the user: a worker says so, unless that reveals presence.

Their dead letters, and the releases of the others, are those of `test_bad_input.py`.
"""

from pathlib import Path
from typing import Any

import orjson

from tests.agents.worker.test_web import WithPort, get, samples
from tests.support.backends import mostly
from tests.support.kafka import Kafka, Record
from tests.support.people import START, visits
from tests.support.workers import shoal

PARTITIONS, EVENTS = 4, 4_000
PRESENCE: dict[str, Any] = {
    "statistic": "count", "value": None, "every": "1h", "relation": "add-remove", "start": "2001-09-09",
}  # fmt: skip


class Unkeyed(WithPort):
    """A deployment with two records in five in their users' partitions, for they have no key."""

    def __init__(self, kafka: Kafka, folder: Path, metric: dict[str, Any]) -> None:
        super().__init__(kafka, folder, metric, sources={"events": PARTITIONS}, partitions=2)
        events = enumerate(visits(EVENTS, people=200))
        kafka.produce(self.topic(), [Record(None, raw, None, number % PARTITIONS) for number, raw in events])
        if metric:
            self.end(range(PARTITIONS), START + EVENTS * 60, header="shoal-beat")

    def refused(self) -> int:
        return self.kafka.length(f"{self.app}.dead-letters")


@mostly("kernel")
def test_a_worker_says_that_records_are_keyed_by_something_else(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    with Unkeyed(kafka, tmp_path, {}) as shoals:
        worker = shoals.worker()
        # when it has read them, one line for each partition names share and remedy
        worker.wait(lambda: len(worker.said("misplaced")) == PARTITIONS)
        reason = worker.said("misplaced")[0]["reason"]
        assert f"% of {shoals.topic()}[0] is keyed by something else than who: " in reason
        assert "have producers key records by who with partitioner murmur2" in reason
        # and it is not ready
        status, said = get(shoals.port, "/readyz")
        failing = [one["name"] for one in orjson.loads(said)["conditions"] if not one["ok"]]
        assert (status, failing) == (503, ["keys"])
        ratios = [value for name, value in samples(shoals.port).items() if name.startswith("shoal_misplaced_ratio")]
        assert len(ratios) == PARTITIONS
        assert all(0.3 < ratio < 1 for ratio in ratios)
        shoals.stop_all()
        # and the refused events tell the same
        assert f"% of {shoals.topic()}[0], " in shoal("dead-letters", shoals.config).stdout


def test_a_worker_that_protects_presence_says_nothing_and_the_commands_do(kafka: Kafka, tmp_path: Path) -> None:
    with Unkeyed(kafka, tmp_path, PRESENCE) as shoals:
        worker = shoals.worker()
        worker.wait(lambda: shoals.refused() > EVENTS / 2)
        conditions = {one["name"] for one in orjson.loads(get(shoals.port, "/readyz")[1])["conditions"]}
        shown = {name.partition(" ")[0] for name in samples(shoals.port)}
        shoals.stop_all()
        assert not {"keys", "transactions"} & conditions
        assert not {"shoal_misplaced_ratio", "shoal_open_transaction_seconds"} & shown
        assert not [*worker.said("misplaced"), *worker.said("open_transaction")]
        text = "are keyed by something else than who"
        assert text in shoal("dead-letters", shoals.config).stdout
        assert text in shoal("check", shoals.config).stdout
