"""The pages of results say what the last full runs found, and the guides nothing else."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks import clip_range, few_users, figures, presence, shown_keys
from benchmarks.accuracy import page as accuracy
from benchmarks.accuracy import scatter, together
from benchmarks.decay import page as decay
from benchmarks.decay import report as decay_report
from benchmarks.page import kept
from benchmarks.places import page as places
from benchmarks.places import report as places_report

TABLES: dict[str, Callable[[Any], str]] = {
    "accuracy": lambda data: accuracy.tables(accuracy.from_json(data)),
    "decay": lambda data: decay.tables(decay_report.from_json(data)),
    "places": lambda data: places.tables(places_report.from_json(data)),
    "together": lambda data: together.tables(together.from_json(data)),
    "scatter": lambda data: scatter.tables(scatter.from_json(data)),
    "few-users": lambda data: few_users.tables(few_users.from_json(data)),
    "clip-range": lambda data: clip_range.tables(clip_range.from_json(data)),
    "presence": lambda data: presence.tables(presence.from_json(data)),
    "shown-keys": lambda data: shown_keys.tables(*shown_keys.from_json(data)),
}
GUIDES = {"accuracy": ("accuracy", "together", "scatter"), "decay": ("decay",), "places-accuracy": ("places",)}


def results(name: str) -> str:
    return (figures.RESULTS / f"{name}.md").read_text()


@pytest.mark.parametrize("name", TABLES)
def test_the_page_says_what_the_last_full_run_found(name: str) -> None:
    found = kept(name)
    assert found is not None
    assert f"\n\n{TABLES[name](found)}\n\n{found['machine']}; {found['versions']}; " in results(name)


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_tells_what_was_measured(name: str) -> None:
    guide, found = (figures.ROOT / "docs/explanation" / f"{name}.md").read_text(), "".join(map(results, GUIDES[name]))
    told = [*re.findall(r"^\|.*\|$", guide, re.MULTILINE), *re.findall(r"^[^|\n]*(\*\*.+?\*\*)", guide, re.MULTILINE)]
    assert told
    assert [quoted for quoted in told if quoted not in found] == []
