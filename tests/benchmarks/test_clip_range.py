"""The benchmark of clip ranges measures what is released, and its page says plainly what is missed."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import clip_range
from benchmarks.clip_range import Report, Row, drawn, from_json, held_out, main, measure, metric, settled, tables
from benchmarks.presence import Workload

ROW = Row("purchases", 1500, 64, 9, True, 36.0, (16.0, 3.0), (2.0, 1.0), None, 30.0, 170.0, -0.8)


def report(**changes: object) -> Report:
    """A run that met all targets."""
    rows = [ROW, replace(ROW, m=16, chosen=(1.2, 1.0)), replace(ROW, name="law"), replace(ROW, is_held_out=False)]
    return replace(Report(rows, 9, 1.0), **changes)  # type: ignore[arg-type]


def little() -> Workload:
    """Few people, many days, and values far below the end of the range."""
    return drawn("little", 2500, 1.0, 10_000, lambda random, units, users: random.exponential(20, len(units)), 3)


def test_a_workload_is_measured_as_it_is_released() -> None:
    work = little()._replace(days=40, at=[day % 40 for day in sorted(little().at)])
    row = measure(work, 1, 2, is_held_out=False)
    assert (row.users, row.top, row.unknown) == (2500, 10_000, None)  # too few for what is waited for
    assert 5 < row.first < 40
    assert row.high < 1000
    assert row.chosen[0] < row.given[0]
    assert row.true == pytest.approx(np.mean(work.values))


def test_workloads_are_those_that_are_described() -> None:
    known, new = list(settled()), list(held_out())
    assert len(known) == 7
    assert [work.name for work, _ in new] == ["gamma by person, times Weibull", "log-logistic, 2"] + ["purchases"] * 3
    assert not {work.name for work, _ in known} & {work.name for work, _ in new}
    for work, m in (*known, *new):
        assert list(work.at) == sorted(work.at)
        assert metric(work, m).max_contributions == m


def test_a_missed_target_is_told() -> None:
    assert "missed" not in tables(report())
    far = [replace(row, chosen=(20.0, 1.0)) for row in report().rows]
    assert tables(report(rows=far)).count("**missed**") == 3


def test_what_was_kept_is_told_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clip_range, "settled", lambda: iter([(little(), 1)]))
    monkeypatch.setattr(clip_range, "held_out", lambda: iter([(little()._replace(name="purchases"), 1)]))
    monkeypatch.setattr(clip_range, "_targets", lambda report: iter([]))
    main(["--quick", "--out", str(tmp_path)])
    known = json.loads((tmp_path / "clip-range.json").read_text())
    assert tables(from_json(known)) in (tmp_path / "clip-range.md").read_text()
