"""A worker ends in order from its first moment on; other commands are ended by SIGTERM as any program is."""

import os
import signal
from collections.abc import Iterator

import pytest

from shoal.agents.cli import entry, main


@pytest.fixture
def handler() -> Iterator[None]:
    """Handlers as a terminal leaves them, and as they were afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    for number, was in before.items():
        signal.signal(number, was)


@pytest.mark.usefixtures("handler")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_worker_that_still_starts_leaves_with_status_0(monkeypatch, number):
    monkeypatch.setattr("sys.argv", ["shoal", "worker", "shoal.toml"])
    monkeypatch.setattr(main, "main", lambda: os.kill(os.getpid(), number))
    with pytest.raises(SystemExit) as left:
        entry.main()
    assert left.value.code == 0


@pytest.mark.usefixtures("handler")
def test_other_commands_keep_the_usual_way(monkeypatch):
    before = signal.getsignal(signal.SIGTERM)
    seen = []
    monkeypatch.setattr("sys.argv", ["shoal", "run"])
    monkeypatch.setattr(main, "main", lambda: seen.append(signal.getsignal(signal.SIGTERM)))
    entry.main()
    assert seen == [before]


@pytest.mark.usefixtures("handler")
def test_what_nohup_starts_outlives_its_terminal(monkeypatch):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    monkeypatch.setattr("sys.argv", ["shoal", "worker", "shoal.toml"])
    monkeypatch.setattr(main, "main", lambda: os.kill(os.getpid(), signal.SIGHUP))
    entry.main()
