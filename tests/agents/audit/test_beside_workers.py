"""`shoal audit replay` while workers run, metrics come and go, and the first events are deleted."""

import asyncio
from pathlib import Path

import orjson
import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete
from typer.testing import CliRunner

from shoal.agents.cli.main import app
from shoal.models.errors import LedgerError
from tests.agents.audit.test_commands import FULL
from tests.support.audit import audit, replay
from tests.support.backends import mostly
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits
from tests.support.workers import tails, wait_until


@mostly("kernel")
def test_workers_may_run_beside_and_metrics_may_come_and_go(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    # given two metrics, one of which is retired when half of the events are through
    events = visits(1_600, step=300)
    old = ({"name": "stays", "every": "2h"}, FULL | {"name": "goes", "group": "city"})
    with Deployment(
        kafka, tmp_path, *old, sources={"events": 2}, epsilon=9000, partitions=2, idle_after="1s"
    ) as shoals:
        shoals.make_topics()
        worker = shoals.worker()
        shoals.produce(events[:800])
        shoals.wait_releases(30)
        worker.stop()
        retired = CliRunner().invoke(app, ["budget", str(shoals.config), "--retire", "goes"])
        assert retired.stdout.startswith("retired  goes version 1\n")
        # and another one takes its place, with a clock of its own and one that it shares
        shoals.metrics[1:] = [
            {**shoals.metrics[0], **FULL, "name": "comes"},
            {**shoals.metrics[0], "name": "late", "lateness": "1h"},
        ]
        shoals.write_config()
        feeding = shoals.produce_slowly(events[800:], seconds=4)
        worker = shoals.worker()
        # when a replay runs while the worker does
        seen: list[int] = []
        worker.wait_owns(4)
        while feeding.is_alive():
            said = replay(shoals.config)
            assert said.ok, said.text
            seen.append(said.fields["confirmed"])
        wait_until(lambda: metrics_of(shoals) == {"stays", "goes", "comes", "late"}, 40, lambda: tails(shoals.workers))
        worker.stop()
        # then it confirms more and more, and in the end everything of the metrics that are left, from the events on
        assert seen == sorted(seen)
        said = replay(shoals.config)
        assert said.ok, said.text
        note = 'configuration: metric "goes" version 1 is retired; its releases are not replayed'
        assert said.fields["notes"][0] == note  # the log may be behind, which is another one
        assert said.fields["confirmed"] == sum(b'"goes"' not in release for release in shoals.releases())
        # when the first events are deleted, the releases still follow from the contributions, and those from nothing
        asyncio.run(delete_events(kafka.bootstrap, shoals.topic(), before=5))
        assert audit("replay", shoals.config).ok
        said = replay(shoals.config)
        assert (said.kinds, "events 0 to 4 are gone" in said.text) == ({"events"}, True)
        # and without the metric that is still active nothing is replayed
        shoals.metrics.pop()
        shoals.write_config()
        with pytest.raises(LedgerError, match='"late" version 1 is active in the ledger and missing here'):
            audit("replay", shoals.config)


def metrics_of(shoals: Deployment) -> set[str]:
    return {orjson.loads(release)["metric"] for release in shoals.releases()}


async def delete_events(bootstrap: str, topic: str, before: int) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=before)})
    finally:
        await admin.close()
