"""`shoal export`: the same releases as CSV, JSON lines and Parquet; what is wrong is one line and exit 1 or 2."""

import csv
import io
import signal
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import shoal
from shoal.agents.cli.main import app, main
from shoal.agents.reading.table import COLUMNS
from shoal.models.errors import InputError
from tests.support.releases import lines, release, town
from tests.support.workers import wait_until

DAILY = """
[privacy]
epsilon = 4
[[metric]]
name = "basket"
topic = "purchases"
user = "customer"
value = "amount"
time = "at"
statistic = "mean"
range = [0, 120]
epsilon = 1
max_contributions = 4
slot = "1d"
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "releases.jsonl"
    path.write_bytes(lines([*town(4, 3), release("odd", 1, 2.5, group="=HYPERLINK(1)")]))
    return str(path)


def export(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["export", *arguments])


def test_csv_goes_to_stdout_with_a_row_for_each_number(file):
    told = export("--input", file)
    assert told.exit_code == 0, told.output
    rows = list(csv.DictReader(io.StringIO(told.stdout, newline="")))
    assert list(rows[0]) == list(COLUMNS)
    assert len(rows) == len(shoal.read(file))
    assert rows[-1]["group_name"] == "'=HYPERLINK(1)"
    assert told.stderr == f"shoal: {len(rows)} releases, as csv\n"


def test_without_a_guard_texts_stay_as_they_are(file):
    told = export("--input", file, "--metric", "odd", "--no-guard")
    assert "odd,1,=HYPERLINK(1),1," in told.stdout


def test_with_its_configuration_a_file_says_since_when(file, tmp_path):
    # given a file of daily slots, whose lines do not say how long these are
    config = tmp_path / "shoal.toml"
    config.write_text(DAILY)
    alone, told = export("--input", file, "--metric", "basket"), export(str(config), "--input", file)
    assert told.exit_code == 0, told.output
    assert {row["since"] for row in csv.DictReader(io.StringIO(alone.stdout, newline=""))} == {""}
    rows = list(csv.DictReader(io.StringIO(told.stdout, newline="")))
    days = [(row["since"], row["until"]) for row in rows if row["metric"] == "basket"]
    assert days
    assert all(datetime.fromisoformat(at) - datetime.fromisoformat(since) == timedelta(days=1) for since, at in days)
    # and what the configuration does not have stays without
    assert {row["since"] for row in rows if row["metric"] == "odd"} == {""}


def test_json_lines_are_the_bytes_that_were_published(file, tmp_path):
    out = tmp_path / "some.jsonl"
    assert export("--input", file, "--output", str(out), "--metric", "basket", "--since", "2026-03-02").exit_code == 0
    kept = [line for line in Path(file).read_bytes().splitlines(keepends=True) if b'"basket"' in line]
    assert out.read_bytes() == b"".join(kept[1:])
    assert export("--input", str(out), "--format", "jsonl").stdout_bytes == out.read_bytes()


def test_parquet_has_the_table(file, tmp_path):
    import pyarrow.parquet  # which takes half a second, and only this test needs

    out = tmp_path / "all.parquet"
    assert export("--input", file, "--output", str(out)).exit_code == 0
    table = pyarrow.parquet.read_table(out)
    releases = shoal.read(file)
    assert table.schema.equals(releases.to_arrow().schema)
    of_file = sorted(table.to_pylist(), key=lambda row: row["id"])
    assert of_file == sorted(releases.to_arrow().to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name one thing to read"),
        (("shoal.toml", "--log", "sqlite:///b"), "name one thing to read"),
        (("--input", "a", "--log", "sqlite:///b"), "name one thing to read"),
        (("--input", "a", "--app", "shop"), "--log URL"),
        (("--input", "a", "--format", "xls"), "xls"),
        (("--input", "a", "--output", "some.jsonl.gz"), "nothing is packed here"),
    ],
)
def test_a_slip_of_the_command_is_status_2(arguments, said):
    told = export(*arguments)
    assert told.exit_code == 2
    assert said in told.stderr


def test_what_cannot_be_read_leaves_no_file(file, tmp_path, monkeypatch, capsys):
    out = tmp_path / "out.csv"
    out.write_text("before")
    with Path(file).open("ab") as more:
        more.write(b"{}\n")
    monkeypatch.setattr(sys, "argv", ["shoal", "export", "--input", file, "--output", str(out)])
    with pytest.raises(SystemExit, match="1"):
        main()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"shoal: {file}: line ")
    assert line.endswith("is no release; name a file of releases, as `shoal run` writes it")
    assert out.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "releases.jsonl"]


def test_sigterm_leaves_what_was_there(file, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("before")
    command = [sys.executable, "-m", "shoal", "export", "--input", "-", "--output", str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        wait_until(lambda: len(list(tmp_path.iterdir())) == 3, 60, lambda: "no file is begun")
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, b"shoal: stopped\n")
    assert out.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "releases.jsonl"]


def test_a_metric_that_is_not_there_is_an_error(file):
    told = export("--input", file, "--metric", "baskte")
    assert isinstance(told.exception, InputError)
    assert "no metric 'baskte'; there are: basket, odd" in str(told.exception)
