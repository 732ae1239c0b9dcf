"""`shoal dashboard`: a file of releases becomes a page; what cannot be read is said."""

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shoal.agents.cli.main import app
from tests.support.releases import lines, release


@pytest.fixture
def releases(tmp_path: Path) -> Path:
    path = tmp_path / "releases.jsonl"
    path.write_bytes(lines([release("basket", day, 35.0) for day in range(1, 4)]) + b'{"metric": "bas')
    return path


def test_a_file_becomes_a_page(releases: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["dashboard", "--input", str(releases), "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {
        "page": str(out), "releases": 3, "metrics": 1, "left_out": {"of another kind": 1}, "bytes": out.stat().st_size,
    }  # fmt: skip
    assert done.stderr == f"shoal: note: {releases}: 1 of another kind, left out\n"
    assert out.read_text("utf-8").startswith("<!doctype html>")


def test_a_page_goes_to_stdout_and_comes_from_a_gzipped_file(releases: Path, tmp_path: Path) -> None:
    packed = tmp_path / "releases.jsonl.gz"
    packed.write_bytes(gzip.compress(releases.read_bytes()))
    done = CliRunner().invoke(app, ["dashboard", "--input", str(packed), "--out", "-"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("<!doctype html>")
    assert "releases.jsonl.gz" in done.stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "there is no release in it"), (b"\xff\n[]\n", "there is no release in it"), (None, "cannot be read")],
)
def test_a_file_without_releases_is_refused_in_one_line(tmp_path: Path, content: bytes | None, message: str) -> None:
    path, out = tmp_path / "some.jsonl", tmp_path / "page.html"
    if content is not None:
        path.write_bytes(content)
    done = CliRunner().invoke(app, ["dashboard", "--input", str(path), "--out", str(out)])
    assert done.exit_code != 0
    assert message in str(done.exception)
    assert not out.exists()
