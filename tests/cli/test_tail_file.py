"""`shoal tail --input`: the releases of a file in lines, without Kafka, as docs/reference/releases.md says."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from shoal.agents.cli.main import app
from shoal.models.errors import InputError
from tests.support.desk import CONFIG
from tests.support.releases import release


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "releases.jsonl"
    made = [release("level", seq, 30.0 + seq, group=group) for seq in (1, 2) for group in ("a", "b")]
    path.write_text("".join(json.dumps(one) + "\r\n" for one in made) + "\nno release\n")
    return path


def tail(*arguments: object, typed: str = "") -> Result:
    return CliRunner().invoke(app, ["tail", *map(str, arguments)], input=typed)


def test_a_file_is_printed_in_lines_whole_and_in_its_order(file: Path) -> None:
    done = tail("--input", file)
    assert done.exit_code == 0
    assert [line.split()[2] for line in done.stdout.splitlines()] == ["a", "b", "a", "b"]
    assert all(" ± " in line for line in done.stdout.splitlines())
    assert done.stderr == "shoal: note: a record is no release, and left out, as all that are none\n"
    assert tail("--input", "-", typed=file.read_text()).stdout == done.stdout


def test_what_is_wanted_of_it_is_chosen_as_of_topics(file: Path) -> None:
    lines = tail("--input", file).stdout.splitlines()
    assert [line.split()[2] for line in tail("--input", file, "--group", "b").stdout.splitlines()] == ["b", "b"]
    assert tail("--input", file, "--last", 1, "--group", "b").stdout.split() == lines[-1].split()
    assert tail("--input", file, "--json", "--last", 1).stdout == file.read_text().splitlines()[-3] + "\n"
    assert tail("--input", file, "--metric", "none").stdout == ""


def test_a_configuration_beside_it_names_the_metrics_there_are(file: Path) -> None:
    config = file.with_name("shoal.toml")
    config.write_text(CONFIG)
    done = tail(config, "--input", file, "--metric", "other")
    assert done.exit_code == 2
    assert "name one of: level" in done.stderr


def test_nothing_to_read_is_said(file: Path) -> None:
    assert "name a configuration, or a file of releases" in " ".join(tail().stderr.split())
    done = tail("--input", file.with_name("none.jsonl"))
    assert isinstance(done.exception, InputError)
