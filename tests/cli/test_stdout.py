"""Standard output that cannot be written is one line and exit 1, whatever is printed, and nothing more at exit."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.desk import MEAN, Desk

FULL = "shoal: standard output: cannot be written (No space left on device); make room, or pipe it on"
PRINTED = {  # what is printed, and by whom
    "--help": "help of all commands, by Typer",
    "--version": "a line, by Typer",
    "plan --help": "help of one",
    "plan shoal.toml": "a table, by rich",
    "budget shoal.toml": "a result",
    "check shoal.toml": "lines",
    "label shoal.toml --json": "a result as JSON",
    "schema": "what is left in a buffer until the end",
    "schema configuration": "more than a buffer holds",
    "simulate buses --users 1 --hours 0.1": "bytes",
}


@pytest.fixture
def shop(desk: Desk) -> Path:
    desk.say(MEAN)
    return desk.folder


def printed(folder: Path, typed: str, *, to: str, unbuffered: str = "") -> subprocess.CompletedProcess[str]:
    with Path(to).open("wb") as stdout:
        return subprocess.run(
            [sys.executable, "-m", "shoal", *typed.split()],
            cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip


# A short run has one of each way of printing: Typer, rich, `print`, a buffer that fills, bytes.
SHORT = (
    "--help",
    "plan shoal.toml",
    "label shoal.toml --json",
    "schema configuration",
    "simulate buses --users 1 --hours 0.1",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "typed",
    [
        pytest.param(typed, id=what, marks=[] if typed in SHORT else [pytest.mark.long])
        for typed, what in PRINTED.items()
    ],
)
def test_a_full_disk_is_no_bug(shop: Path, typed: str) -> None:
    said = printed(shop, typed, to="/dev/full")
    assert said.returncode == 1
    (line,) = [line for line in said.stderr.splitlines() if not line.startswith("shoal: warning: ")]
    assert line.startswith("shoal: standard output: cannot be written (No space left on device); make room")


def test_nor_is_it_where_nothing_is_buffered(shop: Path) -> None:
    said = printed(shop, "--help", to="/dev/full", unbuffered="1")
    assert (said.returncode, said.stderr) == (1, f"{FULL}\n")


def test_a_mistake_is_told_before_a_full_disk(shop: Path) -> None:
    said = printed(shop, "schema nothing", to="/dev/full")
    assert (said.returncode, "there is no schema 'nothing'" in said.stderr) == (1, True)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_standard_output_that_can_be_written_gets_the_same_bytes(shop: Path, unbuffered: str) -> None:
    whole = printed(shop, "schema configuration", to=str(shop / "out"), unbuffered=unbuffered)
    assert (whole.returncode, whole.stderr) == (0, "")
    assert (shop / "out").read_text("utf-8").endswith("}\n")


@pytest.mark.parametrize("typed", ["schema", "schema configuration"])
def test_a_reader_that_has_gone_is_no_mistake_and_leaves_no_words(shop: Path, typed: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [sys.executable, "-m", "shoal", *typed.split()], cwd=shop, stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_a_closed_standard_output_is_no_failure(shop: Path) -> None:
    command = ["sh", "-c", 'exec "$0" -m shoal --version >&-', sys.executable]
    ended = subprocess.run(command, cwd=shop, stderr=subprocess.PIPE, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
