"""The library's page and docstrings: every stable name is described, and examples import nothing else."""

import ast
import doctest
import inspect
import subprocess
import sys

import pytest

import shoal.mechanisms
from docs.generate import library
from tests.support.cover import in_a_loop

NAMES = shoal.mechanisms.__all__
PAGE = library.PAGE.read_text()
SAID = ("Shapes", "Units", "Raises", "Source")
ALSO = {"fractions", "secrets"}  # of the standard library


def docstring(name: str) -> str:
    return inspect.getdoc(getattr(shoal.mechanisms, name)) or ""


def examples_of(text: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(text.replace("```", "\n"))


def test_the_table_has_the_stable_names_and_no_others() -> None:
    written = PAGE.partition(library.BEGIN)[2].partition(library.END)[0]
    assert written == library.table(), "run: make reference"
    assert [line.split("`")[1] for line in written.splitlines()[2:]] == NAMES
    assert sorted(NAMES) == NAMES


@in_a_loop
@pytest.mark.parametrize("name", NAMES)
def test_a_stable_name_says_its_shapes_units_errors_source_and_an_example(name: str) -> None:
    said = docstring(name)
    lines = [line.split()[0] for line in said.splitlines() if line.split()]
    assert [word for word in lines if word in SAID] == list(SAID)
    assert any(name.partition(".")[2] in example.source for example in examples_of(said))
    assert name in library.table()


@in_a_loop
@pytest.mark.parametrize("name", [*NAMES, "the page"])
def test_examples_import_stable_names_alone(name: str) -> None:
    text = PAGE if name == "the page" else docstring(name)
    for example in examples_of(text):
        for node in ast.walk(ast.parse(example.source)):
            if isinstance(node, ast.ImportFrom) and node.module not in ALSO:
                assert node.module == "shoal.mechanisms"
                assert {alias.name for alias in node.names} <= set(NAMES)
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= ALSO


def test_the_page_shows_every_name_that_is_called() -> None:
    """Types that only `open` makes, and the numbers of a run, are in the docstrings."""
    imported = {
        alias.name
        for example in examples_of(PAGE)
        for node in ast.walk(ast.parse(example.source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    made = {"CounterStream", "DecayedStream", "Estimate", "NumberStream", "UserStream"}
    described = {name for name in NAMES if f"`{name}`" in PAGE.partition(library.BEGIN)[0]}
    assert set(NAMES) - made <= imported | described


def test_a_name_brings_only_what_it_needs() -> None:
    """The package imports nothing by itself, and accounting neither samplers nor statistics."""
    script = (
        "import sys, shoal.mechanisms\n"
        "print([name for name in sys.modules if name.startswith('shoal.mechanisms.')])\n"
        "from shoal.mechanisms import largest_rho\n"
        "print('numpy' in sys.modules, 'shoal.mechanisms.statistic' in sys.modules)\n"
    )
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert made.stdout.splitlines() == ["[]", "False False"]
