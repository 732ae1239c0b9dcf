"""`make test` says what it does, and how long that took in the last complete run on this machine."""

from pathlib import Path

import pytest

from tests.support import progress


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine without an earlier run."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(progress, "RUNNING", tmp_path / "running.json")


def run(*durations: float) -> list[str]:
    """Run all steps with these durations, in seconds, and return all lines."""
    lines, now = progress.advance("start", 0), 0.0
    for name, seconds in zip(progress.STEPS, durations, strict=True):
        lines += progress.advance(name, now)
        now += seconds
    return [*lines, *progress.advance("end", now)]


def test_the_second_run_knows_the_durations_of_the_first() -> None:
    first, second = run(100, 5, 600, 7), run(1, 5, 500, 7)
    assert "the first run on this machine" in first[0]
    assert not any("last run" in line for line in first[1:])
    assert first[-1] == "make test: passed in 11 min 52 s"
    assert "11 min 52 s on 2" in second[0]
    assert second[3].startswith("make test: step 3 of 4: types, tests")
    assert second[3].endswith("(10 min 0 s in the last run)")


def test_a_run_that_stopped_half_way_keeps_the_durations_of_the_last_complete_one() -> None:
    run(100, 5, 600, 7)
    progress.advance("start", 0)
    progress.advance("install", 0)
    assert "11 min 52 s" in progress.advance("start", 9)[0]


def test_durations_that_cannot_be_read_count_as_none() -> None:
    run(100, 5, 600, 7)
    progress.kept().write_text('{"seconds": ')
    assert "the first run on this machine" in progress.advance("start", 0)[0]
