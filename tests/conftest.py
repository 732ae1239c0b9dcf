"""Fixtures for all tests: one real Kafka and PostgreSQL per session, and the same random numbers every time."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import settings

from tests.support import backends, coverage

gc.disable()  # until all is collected: of what is imported nothing is garbage, and looking takes a third of the time
coverage.measure()  # before any module of shoal is imported

from tests.support import nursery  # noqa: E402
from tests.support.effort import tries  # noqa: E402
from tests.support.kafka import Kafka  # noqa: E402
from tests.support.postgres import Postgres  # noqa: E402

# Derandomised: a run in CI is the run at the desk. No deadline: the machine may be busy, and that is no fault.
settings.register_profile("shoal", derandomize=True, deadline=None, max_examples=tries(40))
settings.load_profile("shoal")

HERE = Path(__file__).parent
BROKERS = {"kafka", "demo", "shown", "half_way"}  # fixtures
# Where `make test` looks for tests with a broker: all the others are not even imported beside them.
WITH_BROKERS = [HERE / name for name in ("kafka", "agents", "cli", "test_releases_page.py")]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for a broker is marked so, and so is every story of tests/kafka.

    Raises:
        UsageError: it is where `make test` does not look for it.
    """
    for item in items:
        places = [item.path, *item.path.parents]
        if BROKERS.intersection(getattr(item, "fixturenames", ())) or WITH_BROKERS[0] in places:
            item.add_marker("kafka")
        if item.get_closest_marker("kafka") and not {*WITH_BROKERS, HERE / "long"}.intersection(places):
            raise pytest.UsageError(f"{item.nodeid} needs a broker: name it in tests/conftest.py and Makefile")


@pytest.fixture(params=backends.BACKENDS)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Backend of all workers and file runs of a test: "python", then "kernel" if it is installed."""
    name = str(request.param)
    monkeypatch.setenv(backends.VARIABLE, backends.VALUES[name])
    return name


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """Let no test log to the standard error of a command that an earlier test ran in this process."""
    yield
    structlog.reset_defaults()


def pytest_collection_finish() -> None:
    """Let workers and file runs use the reference in Python unless the environment or `backend` names another."""
    os.environ.setdefault(backends.VARIABLE, backends.OFF)
    gc.freeze()
    gc.enable()


def pytest_sessionfinish() -> None:
    nursery.close()


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """A real broker, shared: each test uses topics, groups and transactional ids of its own (`kafka.name()`)."""
    with Kafka() as broker:
        yield broker


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL server, shared."""
    with Postgres() as server:
        yield server


@pytest.fixture
def postgresql_url(postgres: Postgres) -> Iterator[str]:
    """An empty database of PostgreSQL."""
    with postgres.database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database, once of each kind that the audit log runs on."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'audit.db'}"
    url: str = request.getfixturevalue("postgresql_url")
    return url
