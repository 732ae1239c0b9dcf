"""Source topics whose batches are compressed, by any of Kafka's codecs: the same releases as of plain ones."""

import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits
from tests.support.workers import PATIENCE

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
ATTRIBUTES = 21  # where a batch begins to say what it is; its codec stands in the last bits of the byte after it


def stored_codecs(kafka: Kafka, topic: str) -> set[int]:
    """Those of a topic's batches, as they lie on the broker's disk."""
    found = set()
    for segment in (kafka.data / "log").glob(f"{topic}-*/*.log"):
        raw, at = segment.read_bytes(), 0
        while at + ATTRIBUTES < len(raw):
            found.add(raw[at + ATTRIBUTES + 1] & 7)
            at += 12 + int.from_bytes(raw[at + 8 : at + 12])
    return found


def pack(shoals: Deployment, name: str) -> None:
    """Have the broker pack a topic's batches, by its own library."""
    topic = ConfigResource(
        ConfigResourceType.TOPIC, shoals.topic(name), {"compression.type": name, "retention.ms": "-1"}
    )
    shoals._administer(lambda client: client.alter_configs([topic]))


@pytest.mark.usefixtures("backend")
def test_events_of_every_codec_are_read(kafka: Kafka, tmp_path: Path) -> None:
    # given a topic for each codec
    metrics = [{"name": name, "topic": name} for name in CODECS]
    with Deployment(kafka, tmp_path, *metrics, sources=dict.fromkeys(CODECS, 1)) as shoals:
        for name in CODECS:
            pack(shoals, name)
        # when a worker reads them
        shoals.worker()
        events = visits(400)
        for name in CODECS:
            shoals.oracle.run(events, name)
            shoals.produce(events, name, end=True)
        # then the releases are those of the events
        shoals.expect_equality()
        for name, number in CODECS.items():
            assert stored_codecs(kafka, shoals.topic(name)) == {number}
        shoals.stop_all()


@pytest.mark.parametrize("name", ["lz4", pytest.param("zstd", marks=pytest.mark.long)])
def test_where_a_codec_is_missing_a_worker_says_what_to_install(kafka: Kafka, tmp_path: Path, name: str) -> None:
    # given events that nobody without the library can unpack
    with Deployment(kafka, tmp_path, {"topic": name}, sources={name: 1}) as shoals:
        pack(shoals, name)
        shoals.produce(visits(20), name, end=True)
        # when a worker starts where it is not installed
        without = "import sys; sys.modules['cramjam'] = None; from shoal.agents.cli.entry import main; main()"
        command = [sys.executable, "-c", without, "worker", str(shoals.config)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=120 * PATIENCE)
        # then it ends, rather than to fetch the same batch for ever
        assert ended.returncode == 1
        assert ended.stderr.splitlines()[-1] == (
            f"shoal: reading: a batch cannot be unpacked: Libraries for {name} compression codec not found; "
            "`pip install cramjam` brings the codecs snappy, lz4 and zstd, and is installed with shoal; nothing is lost"
        )
