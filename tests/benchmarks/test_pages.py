"""The pages of results say what the last full runs found, and the guides nothing else."""

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest

from benchmarks import figures


def module(name: str) -> Any:
    """A module of the benchmarks, imported by the test that needs it: some import large packages."""
    return import_module(f"benchmarks.{name}")


def told_by(page: str, report: str | None = None) -> Callable[[Any], str]:
    """The tables that a module makes of the results that it, or another, reads."""
    return lambda data: module(page).tables(module(report or page).from_json(data))


TABLES: dict[str, Callable[[Any], str]] = {
    "accuracy": told_by("accuracy.page"),
    "decay": told_by("decay.page", "decay.report"),
    "places": told_by("places.page", "places.report"),
    "together": told_by("accuracy.together"),
    "scatter": told_by("accuracy.scatter"),
    "few-users": told_by("few_users"),
    "clip-range": told_by("clip_range"),
    "presence": told_by("presence"),
    "shown-keys": lambda data: module("shown_keys").tables(*module("shown_keys").from_json(data)),
}
GUIDES = {"accuracy": ("accuracy", "together", "scatter"), "decay": ("decay",), "places-accuracy": ("places",)}


def results(name: str) -> str:
    return (figures.RESULTS / f"{name}.md").read_text()


@pytest.mark.long
@pytest.mark.parametrize("name", TABLES)
def test_the_page_says_what_the_last_full_run_found(name: str) -> None:
    found = module("page").kept(name)
    assert found is not None
    assert f"\n\n{TABLES[name](found)}\n\n{found['machine']}; {found['versions']}; " in results(name)


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide_tells_what_was_measured(name: str) -> None:
    guide, found = (figures.ROOT / "docs/explanation" / f"{name}.md").read_text(), "".join(map(results, GUIDES[name]))
    told = [*re.findall(r"^\|.*\|$", guide, re.MULTILINE), *re.findall(r"^[^|\n]*(\*\*.+?\*\*)", guide, re.MULTILINE)]
    assert told
    assert [quoted for quoted in told if quoted not in found] == []
