"""Workers that go on where a file ended, on a real broker: nothing twice, nothing missing, and no way back to files."""

from pathlib import Path

import orjson

from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits
from tests.support.workers import shoal

METRICS = ({"name": "city", "group": "city", "every": "6h"}, {"name": "hourly", "every": "1h"})


def run(shoals: Deployment, events: list[bytes], *options: str) -> tuple[int, str, int]:
    """`shoal run` of the deployment's own app: status, what it says, and how many releases it shows."""
    (shoals.folder / "in.jsonl").write_bytes(b"".join(event + b"\n" for event in events))
    said = shoal("run", shoals.config, "--input", "in.jsonl", "--output", "out.jsonl", *options, cwd=shoals.folder)
    return said.returncode, said.stderr, len((shoals.folder / "out.jsonl").read_bytes().splitlines())


def test_two_workers_go_on_where_a_file_ended(kafka: Kafka, tmp_path: Path) -> None:
    events = visits(900, step=300)
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 2}, partitions=3) as shoals:
        # given the releases of a file, in the log of an app whose topic has the same events and more
        shoals.oracle.run(events)
        status, said, shown = run(shoals, events[:400], "--open")
        assert (status, shown > 20) == (0, True), said
        shoals.produce(events, end=True)
        # when two workers share the partitions
        for _ in range(2):
            shoals.worker()
        # then they publish what one run over all of the events does
        shoals.expect_equality()
        # and from then on a file may only repeat, and must repeat all
        status, said, again = run(shoals, events)
        assert (status, again > shown) == (0, True), said
        status, said, _ = run(shoals, events[:400], "--open")
        assert (status, "this input does not make it" in said) == (1, True), said
        other = [orjson.dumps(orjson.loads(event) | {"x": 0}) for event in events]
        status, said, _ = run(shoals, other)
        assert (status, "two values" in said) == (1, True), said
        shoals.stop_all()
