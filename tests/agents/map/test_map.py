"""Maps of releases: what is read, where it is drawn, what the command writes; its page is tested in a browser."""

import re
import struct
from io import BytesIO
from pathlib import Path
from typing import Any

import h3
import orjson
import pytest
from typer.testing import CliRunner

from shoal.agents.cli.main import app
from shoal.agents.dashboard.geometry import on_plane
from shoal.agents.map.colors import scales
from shoal.agents.map.drawing import draw_map
from shoal.agents.map.releases import MapCell, Places, read_places
from shoal.models.errors import InputError
from shoal.models.times import time_of_text

CENTRE = h3.latlng_to_cell(51.5, -0.12, 8)
RING = sorted(h3.grid_ring(CENTRE, 1))
HOURS = ("2026-03-02T07:00:00Z", "2026-03-02T08:00:00Z")


def release(group: str | None, at: str = HOURS[0], value: Any = 30.0, **more: Any) -> dict[str, Any]:
    """As `shoal run` writes it, but for what a map does not read."""
    width = None if value is None else 4.0
    return {
        "metric": "speed", "group": group, "seq": 1 + HOURS.index(at) if at in HOURS else 1, "at": at, "value": value,
        "low": width and value - width, "high": width and value + width, "samples": 70, "epsilon": 1.0, "delta": 0,
        "unit": "user-slot", "version": 1, "users": 12, "error": width and 2.5,
    } | more  # fmt: skip


def lines(*releases: dict[str, Any]) -> list[bytes]:
    return [orjson.dumps(one) + b"\n" for one in releases]


def read(*releases: dict[str, Any], metric: str | None = None) -> Places:
    return read_places(enumerate(lines(*releases), 1), "releases.jsonl", metric)


@pytest.fixture
def places() -> Places:
    """Two slots: seven cells, one of them without a number; then two cells."""
    early = [release(cell, value=20.0 + 5 * number) for number, cell in enumerate(RING)]
    late = [release(CENTRE, HOURS[1], 31.0), release(RING[0], HOURS[1], 12.0)]
    return read(*early, release(CENTRE, value=None), *late)


# ---------------------------------------------------------------- what is read


def test_slots_come_in_order_of_time_with_their_cells() -> None:
    # given releases in another order
    places = read(release(CENTRE, HOURS[1], value=None), release(CENTRE), release(RING[0], users="x", error=None))
    # then slots are in theirs
    assert list(places.slots) == list(HOURS)
    assert places.slots[HOURS[0]][CENTRE] == MapCell(30.0, 4.0)
    assert places.slots[HOURS[0]][RING[0]] == MapCell(30.0, 4.0)
    assert places.slots[HOURS[1]][CENTRE] == MapCell(None, None)
    assert [orjson.loads(line)["at"] for line in places.lines] == [HOURS[0], HOURS[0], HOURS[1]]
    assert places.cells == sorted([CENTRE, RING[0]])
    assert (places.metric, places.promise) == ("speed", "epsilon = 1 per person and slot, without limit over time")


def test_the_fullest_slot_is_the_one_with_most_numbers_and_of_several_the_last(places: Places) -> None:
    assert places.fullest == HOURS[0]
    assert read(release(CENTRE), release(CENTRE, HOURS[1]), release(RING[0], HOURS[1], value=None)).fullest == HOURS[1]


def test_of_several_parts_the_mean_is_shown() -> None:
    parts = {
        "value": {"mean": 20.0, "variance": 3.0}, "low": {"mean": 19.0, "variance": 0.0},
        "high": {"mean": 22.0, "variance": 9.0}, "delta": 1e-6,
    }  # fmt: skip
    places = read(release(CENTRE) | parts)
    assert places.slots[HOURS[0]][CENTRE] == MapCell(20.0, 1.5)
    assert places.promise == "epsilon = 1, delta = 0.000001 per person and slot, without limit over time"


def test_of_several_versions_the_newest_is_shown() -> None:
    places = read(release(CENTRE, version=2), release(RING[0], version=1))
    assert places.cells == [CENTRE]


def test_other_metrics_are_passed_over_and_of_several_maps_one_must_be_named() -> None:
    total = release(None, metric="total")
    assert read(total, release(CENTRE)).metric == "speed"
    assert read(release(CENTRE), release(RING[0], metric="load"), metric="load").cells == [RING[0]]
    with pytest.raises(InputError, match="2 metrics are by H3 cell; name one: --metric load"):
        read(release(CENTRE), release(CENTRE, metric="load"))
    with pytest.raises(InputError, match="no release of metric 'loud'; there are: speed"):
        read(release(CENTRE), metric="loud")


@pytest.mark.parametrize("group", [None, "GB", "88", CENTRE.upper()[:-1]])
def test_groups_that_are_no_cells_are_refused(group: str | None) -> None:
    with pytest.raises(InputError, match="no metric here is by H3 cell"):
        read(release(group), release(CENTRE))
    with pytest.raises(InputError, match="its groups cannot be drawn"):
        read(release(group), metric="speed")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"at,value\n", "line 2 is no release"),
        (b"[1]\n", "line 2 is no release"),
        (b'{"bus": 1, "at": "2026-03-02T07:00:00Z"}\n', "line 2 is no release"),
        (orjson.dumps(release(CENTRE, at="soon")), "line 2 is no release"),
        (orjson.dumps(release(CENTRE, seq=0)), "line 2 is no release"),
        (orjson.dumps(release(CENTRE, version="1")), "line 2 is no release"),
        (orjson.dumps(release(CENTRE) | {"value": [1, 2]}), "a release has several coordinates"),
        (orjson.dumps(release(CENTRE) | {"value": "1"}), "line 2 is no release"),
        (orjson.dumps(release(CENTRE) | {"value": True}), "line 2 is no release"),
        (orjson.dumps(release(CENTRE)).replace(b"30.0", b"1e400"), "line 2 is no release"),
        (orjson.dumps(release(CENTRE) | {"value": {"quantiles": [1]}}), "no part `mean`"),
    ],
)
def test_what_is_no_release_is_refused_in_one_line_that_holds_no_value(line: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_places([(2, line)], "releases.jsonl")


def test_an_empty_input_is_refused() -> None:
    with pytest.raises(InputError, match="no release in it"):
        read()
    with pytest.raises(InputError, match="there are: none"):
        read(metric="speed")


# ---------------------------------------------------------------- where it is drawn


def test_cells_are_true_in_the_middle_also_on_the_date_line() -> None:
    for place in [(51.5, -0.12), (-16.5, 180.0), (0.0, 179.999)]:
        plane = on_plane(sorted(h3.grid_disk(h3.latlng_to_cell(*place, 8), 3)))
        assert len(plane.polygons) == 37
        areas = [
            abs(sum(a[0] * b[1] - b[0] * a[1] for a, b in zip(ring, [*ring[1:], ring[0]], strict=True))) / 2
            for ring in plane.polygons
        ]
        expected = h3.cell_area(h3.latlng_to_cell(*place, 8), unit="km^2")
        assert areas == pytest.approx([expected] * 37, rel=0.03)
        assert max(plane.width, plane.height) < 10


def test_one_odd_cell_does_not_spoil_the_scale() -> None:
    cells = {str(number): MapCell(float(number), 1.0) for number in range(100)}
    values, margins = scales(Places("m", "", {"t": cells | {"odd": MapCell(1e9, 1e9)}}, ()))
    assert (values.low, values.high) == (2.0, 98.0)
    assert (margins.low, margins.high) == (0.0, 1.1)


# ---------------------------------------------------------------- picture and page


def data_of(text: str) -> dict[str, Any]:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    data: dict[str, Any] = orjson.loads(found)
    return data


@pytest.mark.parametrize(
    "releases",
    [[release(CENTRE)], [release(CENTRE, value=None)], [release(CENTRE, low=None)], [release("8001fffffffffff")]],
    ids=["one cell", "no number", "no interval", "a cell at the pole"],
)
def test_small_maps_are_maps(releases: list[dict[str, Any]], tmp_path: Path) -> None:
    picture, page = BytesIO(), BytesIO()
    draw_map(read(*releases), picture, page, "dollars, $_$ and $", "$^$")
    assert picture.getvalue().startswith(b"\x89PNG")
    assert page.getvalue().startswith(b"<!doctype html>")


# ---------------------------------------------------------------- the command


def test_the_command_draws_a_file_or_stdin(places: Places, tmp_path: Path) -> None:
    file, out = tmp_path / "releases.jsonl", tmp_path / "new" / "maps"
    releases = [release(name, at, value=cell.value) for at, slot in places.slots.items() for name, cell in slot.items()]
    file.write_bytes(b"".join(lines(*releases)))
    done = CliRunner().invoke(app, ["map", str(file), "--out", str(out), "--json"])
    assert orjson.loads(done.stdout) == {
        "metric": "speed", "slots": 2, "cells": 7, "released": 8, "not_released": 1,
        "picture": str(out / "map.png"), "page": str(out / "map.html"),
    }  # fmt: skip
    width, height = struct.unpack(">II", (out / "map.png").read_bytes()[16:24])
    assert 1000 <= width <= 2000
    assert 500 <= height <= 1500
    again = CliRunner().invoke(
        app, ["map", "-", "--out", str(tmp_path), "--label", "speed, km/h", "--metric", "speed"], file.read_bytes()
    )
    assert again.stdout == f"picture   {tmp_path / 'map.png'}\npage      {tmp_path / 'map.html'}\n"
    (metric,) = data_of((tmp_path / "map.html").read_text())["metrics"]
    assert (metric["name"], metric["label"]) == ("speed", "speed, km/h")
    shown = {
        (at, name): value
        for name, (_, _, _, times, _, _, parts, *_) in metric["groups"].items()
        for at, value in zip(times, parts[0][0], strict=True)
    }
    assert shown == {
        ((time_of_text(at) or 0) / 1e6, name): cell.value
        for at, slot in places.slots.items()
        for name, cell in slot.items()
    }


def test_what_cannot_be_read_or_written_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "releases.jsonl"
    for name in (str(file), str(tmp_path)):
        done = CliRunner().invoke(app, ["map", name, "--out", str(tmp_path)])
        assert isinstance(done.exception, InputError)
        assert "cannot be read" in str(done.exception)
    (tmp_path / "broken.gz").write_bytes(b"\x1f\x8b\x08\x00 no")
    assert isinstance(CliRunner().invoke(app, ["map", str(tmp_path / "broken.gz")]).exception, InputError)
    file.write_bytes(b"".join(lines(release(CENTRE))))
    done = CliRunner().invoke(app, ["map", str(file), "--out", str(file)])
    assert isinstance(done.exception, InputError)
    assert str(done.exception) == f"{file}: cannot be made (File exists); choose another folder with --out"
