"""Extras: what is missing is named with the command that installs it, and the names are those of the package."""

import importlib.util
import sys
import tomllib
from pathlib import Path

import pytest

from shoal.models.errors import MissingExtra
from shoal.models.extras import MODULES, require
from tests.support.cover import in_a_loop

EXTRAS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]


def test_the_extras_are_those_of_the_package():
    assert set(MODULES) == set(EXTRAS) - {"all", "docs", "kernel", "test", "tools"}
    assert EXTRAS["all"] == [f"shoal[{','.join(sorted(MODULES))}]"]
    assert "shoal[all]" in EXTRAS["test"]
    assert "shoal[docs,test]" in EXTRAS["tools"]


@in_a_loop
@pytest.mark.parametrize("extra", sorted(MODULES))
def test_an_extra_that_is_installed_is_passed(extra):
    require("a test", extra)
    for module in MODULES[extra]:
        assert importlib.util.find_spec(module)


@in_a_loop
@pytest.mark.parametrize(("module", "extra"), [(module, extra) for extra in MODULES for module in MODULES[extra]])
def test_a_missing_module_names_its_extra(module, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module.partition(".")[0], None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as refused:
        require("a test", extra)
    assert str(refused.value) == f"a test needs packages that are not installed: pip install 'shoal[{extra}]'"


def test_a_package_of_another_author_under_the_same_name_is_not_enough(monkeypatch):
    monkeypatch.setitem(sys.modules, "google.transit", None)
    with pytest.raises(MissingExtra, match=r"pip install 'shoal\[geo\]'"):
        require("a test", "geo")


def test_all_that_is_missing_is_installed_by_one_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "h3", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'shoal\[geo,plots\]'$"):
        require("a map", "geo", "plots", "postgres")


def test_a_parent_that_is_missing_is_no_traceback(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "google"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "google", None)
    with pytest.raises(MissingExtra, match=r"shoal\[geo\]"):
        require("a feed", "geo")
