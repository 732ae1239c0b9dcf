"""The benchmark of presence measures what is released, and its page says plainly what is missed."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import presence
from benchmarks.gaussian_yardsticks import analytic_sigma, gaussian_trees
from benchmarks.presence import (
    Covered,
    Report,
    Row,
    Workload,
    coverage,
    flights,
    from_json,
    main,
    measure,
    purchases,
    tables,
)

ROW = Row("purchases", (0, 200), 16, 9, 99, 0.9, 0.2, 1.0, 0.85, 5.0, 20.0, 1.01, 0.99)


def report(**changes: object) -> Report:
    """A run that met all targets."""
    year = [replace(ROW, name=name, presence=0.75) for name in ("flights, distance", "flights, delay")]
    covered = [Covered("purchases", 3, 5, 9, 0.9), Covered("purchases", 5, 10, 9, 0.95)]
    return replace(Report([ROW, *year], covered, 9, 1.0), **changes)  # type: ignore[arg-type]


def little(days: int = 40) -> Workload:
    """Many people with two values each, on all days."""
    units = list(range(20 * days)) * 2
    at = sorted(unit % days for unit in units)
    return Workload("little", (0, 200), days, units, [0] * len(units), at, [50.0, 30.0] * (20 * days))


def test_a_workload_is_measured_as_it_is_released() -> None:
    row = measure(little(), 2, 4, with_sums=True)
    assert (row.units, row.samples, row.kept) == (800, 1600, 1.0)
    assert row.place == pytest.approx(0.2, abs=1e-3)
    assert 0.5 < row.presence / row.values < 1.2
    assert row.values < row.trees < row.anew
    assert 0.5 < row.counts < 1.5
    found = list(coverage(little(), 2, 0.5, 4))
    assert sum(one.releases for one in found) > 0
    assert all(one.inside > 0.5 for one in found)


def test_workloads_are_those_that_are_described() -> None:
    shop, year, carriers = purchases(), flights("distance"), flights("delay", by_carrier=True)
    assert (len(shop.units), shop.days, shop.ends) == (69659, 546, (0, 200))
    assert len(set(year.units)) == presence.PLANES
    assert (max(carriers.keys), carriers.ends) == (presence.CARRIERS - 1, (-30, 120))
    for work in (shop, year, carriers):
        assert list(work.at) == sorted(work.at)
        assert set(work.at) <= set(range(work.days))


def test_the_noise_of_trees_is_that_of_their_estimate() -> None:
    """At a power of two a prefix is one node, estimated from below."""
    noise = gaussian_trees(np.random.default_rng(1), 4000, 4, 3)
    sigma = analytic_sigma(1.0, 1e-9) * 3 * (2 * 4) ** 0.5
    assert noise[:, 0].std() == pytest.approx(sigma, rel=0.05)
    assert noise[:, 3].std() == pytest.approx(sigma * (4 / 7) ** 0.5, rel=0.05)


def test_the_page_says_what_is_missed() -> None:
    assert tables(report()).count("| met |") == 7
    assert "missed" not in tables(report())
    worse = report(
        rows=[replace(row, presence=4, sums=1.1, counts=0.9) for row in report().rows],
        covered=[Covered("purchases", 5, 10, 9, 0.93)],
    )
    assert tables(worse).count("**missed**") == 7


def test_a_quick_run_keeps_its_figures_where_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(presence, "purchases", little)
    monkeypatch.setattr(presence, "flights", lambda what, by_carrier=False: little())
    main(["--quick", "--out", str(tmp_path)])
    kept = from_json(json.loads((tmp_path / "presence.json").read_text()))
    assert tables(kept) in (tmp_path / "presence.md").read_text()
    assert "noise of the sum" in capsys.readouterr().out
