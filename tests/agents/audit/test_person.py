"""`shoal audit user` tells what a real worker keeps of one person, while it runs and afterwards, without the key."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiokafka import TopicPartition
from typer.testing import CliRunner

from shoal.agents.audit import person
from shoal.agents.audit.replay.scan import Scan
from shoal.agents.cli.main import app
from shoal.models.errors import ConfigError, KafkaError
from shoal.stream.deltas.record import key_of
from shoal.stream.state_mark import MARK
from tests.kafka.test_trimming import delete, is_read
from tests.support.backends import mostly
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.workers import wait_until

HOUR, DAY = 3600, 86400
METRICS: tuple[dict[str, Any], ...] = (
    {"name": "mean", "algorithm": "multi-tree", "prior": 50, "group": "city", "max_per_group": 4,
     "max_groups": 2},
    {"name": "pairs", "algorithm": "multi-tree", "value": ["x", "y"], "range": [[0, 100], [0, 100]], "prior": [50, 50],
     "max_contributions": 4, "users": 10},
    {"name": "sum", "statistic": "sum", "every": "1h", "max_contributions": 9, "group": "city",
     "max_groups": 2},
    {"name": "slots", "statistic": "mean", "slot": "1h", "unit": "user", "max_slots": 2, "group": "city",
     "max_per_group": 4, "algorithm": "array-averaging"},
)  # fmt: skip


def ask(config: Path, who: str) -> dict[str, dict[str, Any]]:
    """By metric what it says, as a script reads it."""
    done = CliRunner().invoke(app, ["audit", "user", str(config), who, "--json"])
    assert (done.exit_code, done.stderr) == (0, "")
    return {line["metric"]: line for line in map(json.loads, done.stdout.splitlines())}


def held(said: dict[str, Any]) -> list[tuple[str | None, str | None, int | None]]:
    return [(each["start"], each["place"], each["samples"]) for each in said["kept"]]


def pairs(shoals: Deployment, who: str) -> list[int | None]:
    """The samples of a person in the metric that comes last for every event."""
    return [each["samples"] for each in ask(shoals.config, who)["pairs"]["kept"]]


@mostly("kernel")
def test_what_a_worker_keeps_of_a_person_is_told(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 2}, partitions=2) as shoals:
        # given four events of ann's in two days, and one of bob's
        events = [("ann", 0, "A"), ("ann", DAY, "A"), ("ann", DAY, "B"), ("ann", DAY + 60, "A"), ("bob", DAY, "B")]
        worker = shoals.worker()
        worker.wait_owns(4)
        shoals.produce([orjson.dumps({"who": u, "at": at, "x": 40, "y": 20, "city": c}) for u, at, c in events])
        # and a machine without the key
        shoals.key.rename(tmp_path / "away.key")
        wait_until(lambda: pairs(shoals, "ann") + pairs(shoals, "bob") == [4, 1], 90, worker.log.read_text, every=0.5)
        # then it is told by metric, as unit and groups have it
        ann = ask(shoals.config, "ann")
        assert list(ann) == ["mean", "pairs", "sum", "slots"]
        assert {"version": 1, "topic": shoals.topic(), "unit": "user"}.items() <= ann["sum"].items()
        assert held(ann["mean"]) == [(None, "A", 3), (None, "B", 1)]
        # of three samples two fill blocks, and the third waits for a fourth
        assert [each["open_sum"] > 0 for each in ann["mean"]["kept"]] == [True, False]
        assert [each["open_sum"] for each in ann["pairs"]["kept"]] == [[0, 0]]
        assert held(ann["sum"]) == [(None, None, 4), (None, "A", None), (None, "B", None)]
        assert [row for row in held(ann["slots"]) if row[0] is None] == [(None, "A", 3), (None, "B", 1)]
        assert {row[0] for row in held(ann["slots"])} - {None} <= {"1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z"}
        # and it is the person's own
        assert held(ask(shoals.config, "bob")["mean"]) == [(None, "B", 1)]
        assert all(said["kept"] == [] for said in ask(shoals.config, "an").values())
        # when all workers have stopped it is the same
        (tmp_path / "away.key").rename(shoals.key)
        shoals.stop_all()
        assert held(ask(shoals.config, "ann")["mean"]) == held(ann["mean"])
        # and people read it
        said = CliRunner().invoke(app, ["audit", "user", str(shoals.config), "ann"])
        lines = said.stdout.splitlines()
        assert lines[0].startswith(f"mean version 1, {shoals.topic()}[")
        assert lines[1:3] == ["  3 samples in 'A', with the sum of an open block", "  1 sample in 'B'"]
        assert "  some of them in 'A'" in lines
        assert "  nothing" in CliRunner().invoke(app, ["audit", "user", str(shoals.config), "nobody"]).stdout


def test_a_beginning_that_workers_delete_meanwhile_changes_no_answer(
    kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Deployment(kafka, tmp_path, METRICS[0], sources={"events": 1}, partitions=1) as shoals:
        changelog, count = f"{shoals.app}.bound.{shoals.topic()}.changelog", 0
        worker = shoals.worker()
        worker.wait_owns(2)

        def feed() -> None:
            nonlocal count
            shoals.produce([orjson.dumps({"who": "ann", "at": count, "x": 40, "y": 20, "city": "A"})])
            count += 1
            wait_until(lambda: is_read(kafka, changelog, count), 60, lambda: worker.text)

        def go_on_and_delete() -> None:
            """One more sample, and nothing is left that the transactions before needed."""
            feed()
            (*_, mark) = (one for one in kafka.read_committed(changelog) if one.key == MARK)
            needed = key_of(json.loads(mark.value or b"")["needs"])
            (offset,) = (one.offset for one in kafka.read_committed(changelog) if one.key == needed)
            asyncio.run(delete(kafka, changelog, offset))

        feed()
        feed()
        ends, races = Scan.stable_ends, 1

        async def raced(scan: Scan, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
            nonlocal races
            found = await ends(scan, tps)
            if races:
                races -= 1
                await asyncio.to_thread(go_on_and_delete)
            return found

        # when the beginning goes after it was asked where the log ends, then the answer is that of the log as it is now
        monkeypatch.setattr(Scan, "stable_ends", raced)
        assert held(ask(shoals.config, "ann")["mean"]) == [(None, "A", 3)]
        assert races == 0
        # and when that happens each time, it says so
        races = 2
        monkeypatch.setattr(person, "ATTEMPTS", 2)
        done = CliRunner().invoke(app, ["audit", "user", str(shoals.config), "ann"])
        assert isinstance(done.exception, KafkaError)
        assert "deleted its beginning 2 times while it was read" in str(done.exception)


def test_an_app_that_never_ran_has_nothing_to_read(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path) as shoals:
        done = CliRunner().invoke(app, ["audit", "user", str(shoals.config), "ann"])
        assert isinstance(done.exception, KafkaError)
        assert f"no topic {shoals.app}.bound." in str(done.exception)


@pytest.mark.parametrize("who", ["", "x" * 257])
def test_what_is_no_user_id_is_refused(tmp_path: Path, who: str) -> None:
    config = tmp_path / "shoal.toml"
    head = '[privacy]\nepsilon = 1\nkey_file = "k"\n[audit]\nurl = "sqlite:///a.db"\n'
    metric = (
        '[[metric]]\nname = "m"\nstatistic = "count"\ntopic = "t"\nuser = "u"\nevery = "1h"\nmax_contributions = 1\n'
    )
    config.write_text(f"{head}{metric}")
    # without brokers there is nothing to ask
    assert isinstance(CliRunner().invoke(app, ["audit", "user", str(config), "ann"]).exception, ConfigError)
    config.write_text(f'[kafka]\nbrokers = "localhost:1"\napp = "a"\n{config.read_text()}')
    done = CliRunner().invoke(app, ["audit", "user", str(config), who])
    assert done.exit_code == 2
    assert "a user id has 1 to 256 bytes" in done.stderr
