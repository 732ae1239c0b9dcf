"""The first moments of a command: signals, files in the way of its imports, and a home that cannot be written."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from shoal.agents.cli import entry, main
from shoal.agents.demo.processes import start
from tests.support.releases import CELLS, lines, release
from tests.support.workers import shoal


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


@pytest.mark.parametrize("module", ["typer", "numpy"])  # needed by all commands; by this one
def test_a_file_in_the_way_of_a_package_is_named_in_one_line(tmp_path, module):
    (tmp_path / f"{module}.py").write_text("")
    command = [sys.executable, "-m", "shoal", "check", "shoal.toml"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    (line,) = said.stderr.splitlines()
    assert said.returncode == 1
    assert line.startswith(f"shoal: {tmp_path / module}.py is imported in place of ")
    assert line.endswith("which shoal needs; rename it, or take its folder out of PYTHONPATH")


def test_processes_of_the_demo_import_nothing_from_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "secrets.py").write_text('raise SystemExit("my own")')
    (tmp_path / "typer.py").write_text('raise SystemExit("my own")')
    monkeypatch.chdir(tmp_path)
    process = start("--version", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.communicate()[0].startswith(b"shoal ")


def test_a_home_that_cannot_be_written_is_not_remarked_on(folder, monkeypatch):
    monkeypatch.setenv("HOME", "/dev/null")
    for name in ("MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    (folder / "places.jsonl").write_bytes(lines([release("speed", 1, 30.0, group=CELLS[0])]))
    said = shoal("map", "places.jsonl", cwd=folder)
    assert said.returncode == 0, said.stderr
    assert "matplotlib" not in said.stderr.lower()
