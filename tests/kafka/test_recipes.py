"""The recipes with kcat and DuckDB, as docs/guides/recipes.md says, on what a real worker published."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.support.kafka import Kafka
from tests.support.recipes import ALL, RECIPES, VISITS, Published
from tests.support.workers import PATIENCE


@pytest.fixture(scope="module")
def published(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    """All releases of the example, with an aborted one in the topic before and after them."""
    with Published(kafka, tmp_path_factory.mktemp("recipes")) as one:
        one.abort(b'{"metric":"before"}')
        one.produce(VISITS, end=True)
        one.wait()
        one.stop()
        one.abort(b'{"metric":"after"}')
        yield one


@pytest.fixture(scope="module")
def copied(published: Published) -> Path:
    """The file that the recipe with kcat makes."""
    kcat(published)
    return published.folder / "releases.jsonl"


def kcat(published: Published) -> str:
    assert all(map(shutil.which, ("kcat", "jq"))), "kcat or jq is not installed: run `make tools`"
    command = [str(RECIPES / "kcat.sh"), published.kafka.bootstrap, published.releases, "releases.jsonl"]
    done = subprocess.run(command, cwd=published.folder, capture_output=True, text=True, timeout=60 * PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def latest(bodies: list[str]) -> list[dict[str, Any]]:
    """The last release of each metric and group, in their order."""
    releases = sorted(map(json.loads, bodies), key=lambda one: one["seq"])
    last = {(one["metric"], one["group"] or ""): one for one in releases}
    return [last[place] for place in sorted(last)]


def test_the_example_has_every_shape(published: Published) -> None:
    bodies = published.bodies()
    assert len(bodies) == ALL == len(published.kafka.read_uncommitted(published.releases)) - 2
    shapes = {(one["group"] is None, type(one["value"])) for one in map(json.loads, bodies)}
    assert shapes == {(True, float), (False, float), (False, type(None)), (True, dict)}


def test_kcat_copies_each_committed_release_once_however_often_it_runs(published: Published, copied: Path) -> None:
    for _ in range(2):
        table = kcat(published)
        assert sorted(copied.read_text().splitlines()) == sorted(published.bodies())
    # and what jq makes of them is the latest of each group
    rows = [line.split("\t") for line in table.splitlines()]
    expected = latest(published.bodies())
    assert [row[:3] for row in rows] == [[one["metric"], one["group"] or "", one["at"]] for one in expected]
    for row, one in zip(rows, expected, strict=True):
        numbers = [one[name] for name in ("value", "low", "high")]
        if isinstance(one["value"], float):
            assert list(map(float, row[3:])) == numbers
        else:
            assert set(row[3:]) == {"no release" if one["value"] is None else "several numbers"}


def test_kcat_leaves_the_file_as_it_was_if_the_broker_is_away(tmp_path: Path) -> None:
    (tmp_path / "releases.jsonl").write_text("as it was\n")
    command = [str(RECIPES / "kcat.sh"), "127.0.0.1:1", "shoal.releases", "releases.jsonl"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60 * PATIENCE)
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert (tmp_path / "releases.jsonl").read_text() == "as it was\n"


def test_duckdb_makes_a_table_of_the_copy_and_a_file_of_parquet(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # given a copy in which a release came twice
    monkeypatch.chdir(copied.parent)
    bodies = copied.read_text().splitlines()
    copied.write_text("".join(f"{line}\n" for line in [*bodies, bodies[-1]]))
    with duckdb.connect() as connection:
        # when the recipe runs
        connection.execute(sql("from-file.sql"))
        table, last, bins, parquet = connection.extract_statements(sql("releases.sql"))
        connection.execute(table)
        # then the table has each release once, with its bytes, and with its numbers or none
        expected = [
            (one["metric"], one["group"], one["seq"], *map(number, numbers(one)), body)
            for body, one in sorted(zip(bodies, map(json.loads, bodies), strict=True), key=lambda pair: pair[1]["id"])
        ]
        found = 'SELECT metric, "group", seq, value, noise_sd, low, high, body FROM "{}" ORDER BY id'
        assert connection.execute(found.format("releases")).fetchall() == expected
        # the latest of each group is the last
        rows = connection.execute(last).fetchall()
        assert [(metric, group, at.isoformat() + "Z", value) for metric, group, at, value, *_ in rows] == [
            (one["metric"], one["group"], one["at"], number(one["value"])) for one in latest(bodies)
        ]
        # the bins are those of the distribution
        of_bins = connection.execute(bins).fetchall()
        assert [share for _, _, share, _, _ in of_bins] == [
            share
            for one in sorted(map(json.loads, bodies), key=lambda one: one["at"])
            if one["metric"] == "amounts"
            for share in one["value"]["histogram"]
        ]
        assert all(low < share < high for _, _, share, low, high in of_bins)
        # and the file of Parquet has all of it
        connection.execute(parquet)
        assert connection.execute(found.format("releases.parquet")).fetchall() == expected


def sql(name: str) -> str:
    return (RECIPES / "duckdb" / name).read_text()


def numbers(release: dict[str, Any]) -> list[Any]:
    return [release[name] for name in ("value", "noise_sd", "low", "high")]


def number(value: Any) -> float | None:
    return value if isinstance(value, float) else None
