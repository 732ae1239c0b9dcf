"""An audit log that was restored from a copy older than the topics is found, and what is said brings it back."""

import shutil
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from shoal.agents.cli.main import app
from shoal.models.errors import LedgerError
from tests.support.deployment import Deployment, rows
from tests.support.kafka import Kafka
from tests.support.people import visits
from tests.support.workers import wait_until

PARTITIONS = 2


def ledger(config: Path) -> tuple[dict[str, list[str]], BaseException | None]:
    """What the ledger's section says, texts and remedies by state; and the refusal."""
    ran = CliRunner().invoke(app, ["check", str(config), "--json"])
    sections = {section["name"]: section["lines"] for section in orjson.loads(ran.stdout)["sections"]}
    said: dict[str, list[str]] = {}
    for line in sections["ledger"]:
        said.setdefault(line["state"], []).append(f"{line['text']}; {line.get('remedy', '')}")
    return said, ran.exception


def restore_log(folder: Path, name: str) -> None:
    for file in folder.glob("shoal.db*"):
        file.unlink()
    shutil.copy(folder / name, folder / "shoal.db")


def audit(name: str, shoals: Deployment, *arguments: str) -> str:
    ran = CliRunner().invoke(app, ["audit", name, str(shoals.config), *arguments])
    assert ran.exit_code == 0, ran.exception
    return ran.output


@pytest.mark.slow
def test_a_log_from_an_older_copy_is_found_and_comes_back(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path, {"group": "city"}, sources={"events": 1}, partitions=PARTITIONS) as shoals:
        events = visits(600, step=300)
        shoals.oracle.run(events)
        # given a copy of a log that has some releases, and a log that has all of them
        shoals.worker().wait_owns(3)
        shoals.produce(events[:300])
        wait_until(lambda: rows(shoals.config)[0] >= 5, 60, lambda: f"{rows(shoals.config)} in SQL")
        audit("backup", shoals, str(tmp_path / "copy.db"))
        shoals.produce(events[300:], end=True)
        shoals.expect_equality()
        shoals.wait_audited()
        shoals.stop_all()
        said, refused = ledger(shoals.config)
        assert refused is None
        assert "it has all releases that the consumer group has passed over; " in said["ok"]
        # when the copy is restored by other means
        restore_log(tmp_path, "copy.db")
        # then the check says so, and what to do
        said, refused = ledger(shoals.config)
        assert isinstance(refused, LedgerError)
        (failed,) = said["failed"]
        assert "that the consumer group has passed over, as after it was restored from an older copy by other" in failed
        assert f"stop all workers, run shoal audit restore {shoals.config} FILE" in failed
        # and that helps, though the log is that copy already
        assert f"workers read {shoals.app}.releases again" in audit("restore", shoals, str(tmp_path / "copy.db"))
        assert "failed" not in ledger(shoals.config)[0]
        shoals.worker().wait_owns(3)
        shoals.expect_equality()
        shoals.wait_audited()
        assert ledger(shoals.config)[1] is None
        shoals.stop_all()
        # and where the topics are gone and made again, the check says what the log has more than they
        with Kafka(data=tmp_path / "anew") as anew:
            shoals.config.write_text(shoals.config.read_text().replace(kafka.bootstrap, anew.bootstrap))
            anew.create_topic(f"{shoals.app}-events", partitions=1)
            assert CliRunner().invoke(app, ["topics", str(shoals.config)]).exit_code == 0
            (warned,) = ledger(shoals.config)[0]["warning"]
            assert f"releases that topic {shoals.app}.releases lacks, as after topics were made anew" in warned
