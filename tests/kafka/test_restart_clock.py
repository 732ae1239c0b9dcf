"""The way on after a clock was taken too far: a restart, and raised versions that begin with a clock of their own."""

from pathlib import Path

import orjson
from typer.testing import CliRunner

from shoal.agents.audit.ledger import Ledger
from shoal.agents.cli.main import app
from tests.support.audit import replay
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka, Record
from tests.support.people import visits

FAR = 4_070_908_800  # 2099, in seconds
TOPIC = "clocks"
ANY_TIMESTAMP = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1)}


def told(*arguments: str | Path) -> str:
    """The standard output of a command that ends well."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == 0, (result.output, result.exception)
    return result.stdout


def warnings(shoals: Deployment) -> list[str]:
    """What `check` warns of."""
    return list(orjson.loads(told("check", shoals.config, "--json"))["warnings"])


def test_after_a_clock_of_2099_a_restart_lets_raised_versions_count_again(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path, {"topic": TOPIC}, sources={"none": 1}, partitions=2) as shoals:
        # given a topic that takes records with whatever timestamp, and a producer whose clock is wrong by decades
        topic = kafka.create_topic(shoals.topic(TOPIC), 2, ANY_TIMESTAMP)
        events = visits(600)
        shoals.oracle.run(events[:300], TOPIC)
        shoals.worker()
        shoals.produce(events[:300], TOPIC)
        wrong = orjson.dumps({"who": "somebody", "at": FAR, "x": 1})
        kafka.produce(topic, [Record(None, wrong, FAR * 1000, partition) for partition in range(2)])
        shoals.wait_releases(len(shoals.oracle.releases()))
        first = shoals.releases()
        shoals.stop_all()
        # then check names the clock, with the command
        (warning,) = [
            text for text in orjson.loads(told("check", shoals.config, "--json"))["warnings"] if "2099" in text
        ]
        assert f"restart the clocks: shoal restart-clock {shoals.config} {topic} --by NAME" in warning
        # when an operator restarts it, who must say so without a terminal
        refused = CliRunner().invoke(app, ["restart-clock", str(shoals.config), topic, "--by", "operator"])
        assert "add --yes" in str(refused.exception)
        said = orjson.loads(told("restart-clock", shoals.config, topic, "--by", "operator", "--yes", "--json"))
        assert (said["epoch"], said["by"], said["ends"]) == (1, "operator", [["m0", 1]])
        assert {clock["time"] for clock in said["clocks"]} == {"2099-01-01T00:00:00Z"}
        # and raises the version
        shoals.metrics[0]["version"] = 2
        shoals.write_config()
        shoals.oracle.forget()
        with Ledger.open(f"sqlite:///{shoals.oracle.folder}/shoal.db") as ledger:
            ledger.of(shoals.app).restart_clock(topic, "operator")
        shoals.oracle.run(events[300:], TOPIC)
        shoals.worker()
        shoals.produce(events[300:], TOPIC, end=True)
        # then the new version releases what it would alone, the old one nothing more, and an audit makes all again
        shoals.wait_releases(len(first) + len(shoals.oracle.releases()))
        found = shoals.releases()
        assert [release for release in found if orjson.loads(release)["version"] == 1] == first
        assert [release for release in found if orjson.loads(release)["version"] == 2] == shoals.oracle.releases()
        shoals.stop_all()
        assert replay(shoals.config).ok
        assert all("2099" not in text for text in warnings(shoals))
