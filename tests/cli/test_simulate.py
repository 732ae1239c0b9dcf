"""`shoal simulate buses`, as one runs it."""

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from shoal.agents.cli.main import app
from shoal.models.errors import InputError

FEW = ["simulate", "buses", "--users", "5", "--hours", "1"]


def test_events_go_to_stdout_and_the_rest_to_stderr() -> None:
    done = CliRunner().invoke(app, FEW)
    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    assert done.stderr == f"{len(lines)} events of 5 buses\n"
    first = orjson.loads(lines[0])
    assert first["at"].startswith("2026-03-02T06:")
    assert list(first) == ["bus", "at", "lat", "lon", "speed"]


def test_a_file_gets_the_same_bytes(tmp_path: Path) -> None:
    out = tmp_path / "trips.jsonl"
    done = CliRunner().invoke(app, [*FEW, "--out", str(out), "--json"])
    assert orjson.loads(done.stdout) == {
        "events": out.read_bytes().count(b"\n"), "users": 5, "seed": 0, "out": str(out),
    }  # fmt: skip
    assert out.read_bytes() == CliRunner().invoke(app, FEW).stdout_bytes


def test_seed_start_and_place_are_heard() -> None:
    more = ["--seed", "7", "--start", "2026-07-01T12:00:00+02:00", "--city=-1.29,36.82", "--h3", "9", "--radius", "5"]
    event = orjson.loads(CliRunner().invoke(app, [*FEW, *more]).stdout.splitlines()[0])
    assert event["at"].startswith("2026-07-01T10:")
    assert abs(event["lat"] + 1.29) < 0.1
    assert abs(event["lon"] - 36.82) < 0.1


@pytest.mark.parametrize(
    "wrong",
    [
        ["--users", "0"], ["--hours", "0"], ["--hours", "nan"], ["--seed", "-1"], ["--h3", "3"], ["--city", "atlantis"],
        ["--city", "89,0"], ["--start", "tomorrow"], ["--start", "1066-10-14"], ["--radius", "1"], ["--users", "many"],
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_a_usage_error(wrong: list[str]) -> None:
    done = CliRunner().invoke(app, [*FEW, *wrong])
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.strip().rpartition("\n")[2].startswith("Error: Invalid value for ")


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, [*FEW, "--out", str(tmp_path)])
    assert isinstance(done.exception, InputError)
    assert "cannot be written (Is a directory)" in str(done.exception)
