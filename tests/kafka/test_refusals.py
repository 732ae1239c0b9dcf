"""What a worker refuses at its start: exit 1, and one line that says what is wrong and what to do."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from shoal.agents.audit.session import open_session
from shoal.agents.kafka.settings import KafkaSettings
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.workers import shoal

Change = Callable[[Deployment], object]


def metric(**changes: object) -> Change:
    """Other keys; one that is None is not written."""
    return lambda shoals: shoals.metrics[0].update(changes)


def key(do: Callable[[Path], object]) -> Change:
    return lambda shoals: do(shoals.key)


def unreadable(path: Path) -> None:
    """For root, too."""
    path.unlink()
    path.symlink_to(path.name)


def register(shoals: Deployment, partitions: int = 4) -> None:
    """As an earlier worker would have."""
    counts = {shoals.topic(): partitions, KafkaSettings("", shoals.app).contributions: 8}
    with open_session(shoals.config) as session:
        session.register(partitions=counts)


def then(*changes: Change) -> Change:
    """An earlier worker ran; then something changed."""

    def change(shoals: Deployment) -> None:
        register(shoals)
        for one in changes:
            one(shoals)

    return change


def another_log(shoals: Deployment) -> None:
    shoals.url = "sqlite:///another.db"


def another_key(shoals: Deployment) -> None:
    other = shoals.folder / "other"
    other.mkdir()
    assert shoal("key", "new", other / "shoal.key").returncode == 0
    shutil.copy(other / "shoal.key", shoals.key)


def small_budget(shoals: Deployment) -> None:
    shoals.epsilon = 0.5


REFUSALS: dict[str, tuple[Change, str]] = {
    "no key": (key(Path.unlink), "does not exist; make it with: shoal key new"),
    "a key that cannot be read": (key(unreadable), "shoal.key cannot be read"),
    "a key that others may read": (
        key(lambda path: path.chmod(0o640)),
        "is open to others (mode 0640); run: chmod 600",
    ),
    "a key that is none": (key(lambda path: path.write_text("secret")), "does not hold a key"),
    "an unknown key of the configuration": (metric(epsilom=1), "unknown key 'epsilom'; did you mean 'epsilon'?"),
    "epsilon 0": (metric(epsilon=0), "epsilon must be greater than 0"),
    "a negative epsilon": (metric(epsilon=-1), "epsilon must be greater than 0"),
    "a reversed range": (metric(range=[200, 0]), "range is reversed or empty; write [low, high]"),
    "a field as value and as pattern": (
        metric(group="x", max_contributions=None, max_per_group=64),
        "field 'x' is a value and 'x' is pattern",
    ),
    "a field inside a value": (metric(time="x.at"), "field 'x' is a value and 'x.at' is pattern"),
    "a topic that is missing": (metric(topic="nowhere"), "no topic"),
    "a budget that is exceeded": (small_budget, "is more than"),
    "another partition count": (lambda shoals: register(shoals, partitions=5), "has 4 partitions"),
    "other parameters under the same version": (then(metric(every="2h")), 'metric "m0" version 1'),
    "a metric that left the configuration": (then(metric(name="other")), 'metric "m0" version 1 is active'),
    "another log for the same key": (then(another_log), "belongs to another audit log"),
    "another key for the same version": (then(another_key), "key"),
}


@pytest.mark.parametrize(("change", "message"), REFUSALS.values(), ids=REFUSALS)
def test_a_worker_refuses(kafka: Kafka, tmp_path: Path, change: Change, message: str) -> None:
    with Deployment(kafka, tmp_path) as shoals:
        secret = shoals.key.read_text().strip()
        change(shoals)
        shoals.write_config()
        refused = shoal("worker", shoals.config)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert refused.stderr.startswith("shoal: ")
        assert refused.stderr.count("\n") == 1
        assert message in refused.stderr
        assert secret not in refused.stderr


def test_a_worker_refuses_a_schema_that_was_not_migrated(kafka: Kafka, tmp_path: Path, postgresql_url: str) -> None:
    with Deployment(kafka, tmp_path, url=postgresql_url) as shoals:
        refused = shoal("worker", shoals.config)
        assert refused.returncode == 1
        assert refused.stderr == "shoal: [audit] url: schema not migrated: run `shoal migrate CONFIG`\n"


def test_a_broker_refuses_a_port_that_is_taken(kafka: Kafka, tmp_path: Path) -> None:
    refused = shoal("broker", "--port", kafka.port, "--data", tmp_path / "data")
    assert refused.returncode == 1
    assert (
        refused.stderr == f"shoal: port {kafka.port} is taken; stop what listens there, or choose another with --port\n"
    )
