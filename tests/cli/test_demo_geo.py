"""`shoal demo --geo`: simulated buses through a real Kafka, an audit, a map; and what is said of it."""

import io
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest
from rich.console import Console
from typer.testing import CliRunner

from shoal.agents.audit.session import load_config
from shoal.agents.cli.main import app
from shoal.agents.dashboard.cells import FIRST
from shoal.agents.demo.places.outcome import outcomes
from shoal.agents.demo.places.scene import PlacesScene
from shoal.agents.demo.progress import DemoProgress
from shoal.agents.demo.show import Shown, run_demo
from shoal.agents.demo.view import PlainView
from shoal.models.times import iso

SMALL = partial(PlacesScene.open, users=600, hours=2)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """A small one that has ended."""
    return run_demo(SMALL, tmp_path_factory.mktemp("geo") / "out", PlainView())


@pytest.fixture(scope="module")
def scene(shown: Shown) -> PlacesScene:
    return SMALL(shown.out)


def test_it_is_audited_and_leaves_a_map(shown: Shown) -> None:
    fields = shown.fields
    assert list(fields) == ["events", "releases", "verified", "picture", "page", "dashboard", "file", "final"]
    assert fields["verified"], shown.audited.complaint
    assert Path(fields["picture"]).read_bytes().startswith(b"\x89PNG")
    assert FIRST in Path(fields["page"]).read_text()
    assert "were confirmed bit for bit" in Path(fields["page"]).read_text()
    assert '"places":{"height"' in Path(fields["dashboard"]).read_text()
    assert shown.text.splitlines()[0] == f"{fields['events']:,} events of 600 simulated buses"


def test_every_cell_in_which_a_bus_counts_is_released_or_said_not_to_be(shown: Shown, scene: PlacesScene) -> None:
    releases = [orjson.loads(line) for line in Path(shown.fields["file"]).read_bytes().splitlines()]
    cells = {(one["at"], one["group"]) for one in releases}
    assert len(cells) == len(releases) == shown.fields["releases"]
    assert cells == {(iso(at), cell) for at, cell in scene.truth}
    assert {(one["value"] is None) == (one["users"] < 20) for one in releases} == {True}
    final = shown.fields["final"]
    assert final["slots"] == 2
    assert final["released"] + final["not_released"] == len(releases)


def test_the_releases_are_those_of_shoal_run(shown: Shown, tmp_path: Path) -> None:
    for name in ("shoal.toml", "shoal.key"):
        (tmp_path / name).write_bytes((shown.out / name).read_bytes())
        (tmp_path / name).chmod(0o600)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "shoal", "run", str(tmp_path / "shoal.toml")),
            *("--input", str(shown.out / "trips.jsonl"), "--output", "-"),
        ],
        capture_output=True,
        check=True,
    )
    assert done.stdout == Path(shown.fields["file"]).read_bytes()


def test_the_map_is_the_one_that_the_command_draws(shown: Shown, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["map", str(shown.fields["file"]), "--out", str(tmp_path), "--json"])
    drawn = orjson.loads(done.stdout)
    final = shown.fields["final"]
    assert {name: drawn[name] for name in ("slots", "released", "not_released")} == {
        name: final[name] for name in ("slots", "released", "not_released")
    }


# ---------------------------------------------------------------- what is shown meanwhile


def text_of(scene: PlacesScene, progress: DemoProgress) -> str:
    console = Console(file=io.StringIO(), width=130, record=True)
    console.print(scene.board(progress))
    return console.export_text()


def release(scene: PlacesScene, number: int, off: float | None) -> dict[str, Any]:
    """A release of a true cell, so far from the truth."""
    at, cell = list(scene.truth)[number]
    mean = scene.truth[at, cell].mean
    value = None if off is None else mean + off
    return {
        "metric": "speed", "group": cell, "seq": 1, "version": 1, "at": iso(at), "value": value,
        "low": value and value - 3, "high": value and value + 3, "samples": 30, "users": 20,
    }  # fmt: skip


def test_a_terminal_sees_hours_fill_and_how_far_they_are_from_the_truth(shown: Shown, scene: PlacesScene) -> None:
    config = load_config(shown.out / "shoal.toml")
    progress = DemoProgress(config, scene.count, scene.due(config), sent=1000)
    assert "waiting" in text_of(scene, progress)
    assert scene.line(progress) == ""
    progress.take(orjson.dumps(release(scene, 0, None)))
    assert scene.line(progress) == "released up to 07:00: 0 speeds"
    for number, off in enumerate((1.0, -2.0, 6.0), 1):
        progress.take(orjson.dumps(release(scene, number, off)))
    (row,) = [line.split() for line in text_of(scene, progress).splitlines() if line.startswith("07:00")]
    assert row == ["07:00", "3", "1", "3.0", "2.0", "6.0"]
    assert scene.line(progress) == "released up to 07:00: 3 speeds, half of them within 2.0 km/h of the truth"
    # and it is over with the last cell, not with the last slot's first one
    for number in reversed(range(4, len(scene.truth))):
        assert not progress.complete
        progress.take(orjson.dumps(release(scene, number, 0.5)))
    assert progress.complete


def test_a_map_without_a_number_is_told_too(shown: Shown, scene: PlacesScene, tmp_path: Path) -> None:
    config = load_config(shown.out / "shoal.toml")
    progress = DemoProgress(config, scene.count, scene.due(config))
    progress.take(orjson.dumps(release(scene, 0, None)))
    conclusion = scene.conclude(progress, tmp_path, "a verdict")
    assert conclusion.lines[1:] == [
        "0 speeds of cells in an hour; 1 cells are not released for an hour, with too few buses"
    ]
    assert conclusion.final["median_error"] is None
    assert outcomes([], scene.truth) == []
