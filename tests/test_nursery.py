"""Processes of the nursery are processes: with a folder, an environment, outputs and an end of their own."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support import nursery
from tests.support.workers import shoal


@pytest.mark.slow
def test_it_has_the_folder_the_outputs_and_the_status_of_a_command(tmp_path: Path) -> None:
    made = shoal("key", "new", "a.key", cwd=tmp_path)
    assert made.returncode == 0
    assert len((tmp_path / "a.key").read_bytes()) >= 32
    again = shoal("key", "new", "a.key", cwd=tmp_path)
    assert again.returncode == 1
    assert "a.key" in again.stderr
    assert again.stdout == ""
    assert shoal("no-such-command").returncode == 2


def test_it_has_the_environment_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> str:
        return shoal("run", "--help").stdout

    monkeypatch.setenv("COLUMNS", "60")
    narrow = told()
    monkeypatch.setenv("COLUMNS", "110")
    assert max(map(len, narrow.splitlines())) <= 60 < max(map(len, told().splitlines()))


def test_it_can_be_frozen_and_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.toml")  # which nobody writes to
    with (tmp_path / "log").open("wb") as log:
        process = nursery.start("check", tmp_path / "config.toml", output=log)
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.1)
    assert process.poll() is None
    process.kill()
    assert process.wait(60) == process.returncode == -signal.SIGKILL
    process.kill()  # which does nothing: it has ended
