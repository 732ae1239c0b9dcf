"""The benchmark of few users measures what is released, and its page says plainly what is missed."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import few_users
from benchmarks.few_users import Report, Row, audit, from_json, main, measure, slopes, tables, users_needed

ROW = Row(2, 100, 200, 0, "none", 1.0, 40, 0, 0.01, 3.0, 5.0, 9.0, 0, 2.0, 0.001)


def report(**changes: object) -> Report:
    """A run that met all targets."""
    errors = [
        replace(ROW, coordinates=d, samples=m, middle=40 * math.sqrt(d / m)) for d in (1, 2, 8, 32) for m in (50, 800)
    ]
    needed = {"1": {"1": 77, "2": 79, "8": 87, "32": 91}}
    whole = Report(errors, [replace(ROW, corrupt=49, lies="alike")], needed, 0.999, 50, 1.0)
    return replace(whole, **changes)  # type: ignore[arg-type]


def test_a_cell_is_measured_as_it_is_released() -> None:
    row = measure(2, 200, "2", 10, 49, "apart")
    assert (row.users, row.draws, row.corrupt) == (few_users.USERS, 10, 49)
    assert 0 < row.middle <= row.farthest
    assert row.rounds >= (row.draws - row.none) / row.draws
    assert row.ratio == pytest.approx(row.middle / (10 * math.sqrt(2 / 200)))
    # so few users cannot be enough at so little epsilon, and at least that many are needed
    assert users_needed(2, "0.25") > users_needed(2, "1") > users_needed(1, "1") > 60


def test_exponents_are_fitted_and_laws_audited() -> None:
    assert slopes(report().errors) == pytest.approx((0.5, -0.5))
    assert 0 < audit(10) <= 1 + 1e-9


def test_the_page_says_what_is_missed() -> None:
    assert tables(report()).count("| met |") == 5
    assert "missed" not in tables(report())
    worse = report(
        errors=[replace(row, middle=row.coordinates * row.middle) for row in report().errors],
        corrupt=[replace(ROW, corrupt=49, outside=1)], needed={"1": {"2": 79, "32": 191}}, largest=1.1,
    )  # fmt: skip
    assert tables(worse).count("**missed**") == 4


@pytest.mark.slow
def test_a_quick_run_keeps_its_figures_where_it_is_told_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(few_users, "DIMENSIONS", (1, 2, 32))
    monkeypatch.setattr(few_users, "SAMPLES", (50, 200))
    main(["--quick", "--out", str(tmp_path)])
    kept = from_json(json.loads((tmp_path / "few-users.json").read_text()))
    assert tables(kept) in (tmp_path / "few-users.md").read_text()
    assert "hockey-stick" in capsys.readouterr().out
