"""What a check says of how long metrics are expected to run, and of how long their means wait."""

from typing import Any

import pytest

from shoal.agents.inspection.lives import SHORTER, lives
from shoal.models.config.metric import MetricSection

USUAL: dict[str, Any] = {
    "name": "m", "topic": "t", "user": "u", "value": "x", "range": (0, 1), "grid": 64, "epsilon": 1,
    "max_contributions": 8, "statistic": "mean",
}  # fmt: skip


def said(**more: Any) -> list[str]:
    return list(lives([MetricSection.model_validate(USUAL | more).parts]))


@pytest.mark.parametrize(("every", "longest"), [("1m", "2d"), ("1h", "128h"), ("1d", "46d")])
def test_a_mean_says_how_long_it_waits_at_most(every: str, longest: str) -> None:
    lines = said(every=every)
    assert lines[1] == (
        f'metric "m": a group begins with its first release from {longest} after its first event on; until then its '
        "releases are the middle of the range, and `waiting` says until when"
    )
    assert lines[2:] == ([] if every == "1d" else [f'metric "m": {SHORTER}'])


def test_a_stated_life_is_no_default() -> None:
    assert said(every="1h", life="1d")[0] == 'metric "m": life is 1d: 24 releases of a group are expected'
    assert not any(SHORTER in line for line in said(every="1h", life="365d"))


def test_a_sum_does_not_wait_and_a_naive_mean_has_no_life() -> None:
    assert said(statistic="sum", every="1h")[1:] == [f'metric "m": {SHORTER}']
    assert said(every="1h", algorithm="naive", users=9) == []
    assert said(every="contribution") == []


def test_presence_has_a_life_and_no_wait() -> None:
    (line,) = said(relation="add-remove", every="1h", start="1970-01-01", end="1970-01-03")
    assert line == 'metric "m": life is 2d: 48 releases of a group are expected'
