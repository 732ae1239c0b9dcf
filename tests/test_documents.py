"""docs/explanation/documents.md: rows have their columns, what they name exists, no item of a paper is missing."""

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/explanation/documents.md"
NAME = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)+)`")
WORDS = ("Literal", "Corrected", "Extended", "In part", "Not built")
NONE, UNTESTED = "—", "No independent test yet"

# What each document numbers; the others number nothing but pages.
NUMBERED = {
    "George": [
        *(f"Algorithm {number}" for number in range(1, 8)),
        *("Definition 2.1", "Lemma 2.2", "Definition 2.3", "Lemma 2.4", "Definition 3.3"),
        *("Theorem 3.1", "Theorem 3.2", "Theorem 3.4", "Lemma A.1", "Lemma A.2", "Claim C.1", "Claim E.1"),
        *(f"({number})" for number in range(1, 15)),
    ],
    "Bolot": [
        *(f"Table {number}" for number in range(1, 5)),
        *(f"Theorem {number}" for number in range(1, 8)),
        *("Assertion 1", "Assertion 2", "Lemma 1", "Lemma 2", "Corollary 1", "Corollary 2", "Corollary 3"),
    ],
}


class Row(NamedTuple):
    """What the page says of one item."""

    document: str
    item: str
    code: str
    how: str
    tests: str


def rows(page: str) -> Iterator[Row]:
    document, columns = "", 0
    for line in page.splitlines():
        if line.startswith("## "):
            document, columns = line[3:], 0
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        columns = columns or len(cells)
        assert len(cells) == columns == 4, line
        if cells[1] != "In shoal" and not set(cells[0]) <= {"-"}:
            yield Row(document, *cells)


ROWS = list(rows(PAGE.read_text()))


@cache
def modules() -> list[str]:
    files = (file.relative_to(ROOT) for file in (ROOT / "shoal").rglob("*.py"))
    return [".".join(file.with_suffix("").parts) for file in files if file.name != "__init__.py"]


@cache
def names_of_tests() -> set[str]:
    """Every test function, by the path of its file and its class."""
    names = set()
    for file in (ROOT / "tests").rglob("test_*.py"):
        path = ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for node in ast.parse(file.read_text()).body:
            inside = node.body if isinstance(node, ast.ClassDef) else [node]
            prefix = f"{path}.{node.name}" if isinstance(node, ast.ClassDef) else path
            names |= {f"{prefix}.{test.name}" for test in inside if isinstance(test, ast.FunctionDef)}
    return names


def in_code(name: str) -> list[str]:
    """The modules that have what is named, as `module.name` or `module.Class.name`."""
    parts = name.split(".")
    having = []
    for split in range(1, len(parts)):
        for module in modules():
            if not f".{module}".endswith(f".{'.'.join(parts[:split])}"):
                continue
            thing: object = importlib.import_module(module)
            for part in parts[split:]:
                thing = getattr(thing, part, None)
            if thing is not None:
                having.append(module)
    return having


def in_tests(name: str) -> list[str]:
    return [test for test in names_of_tests() if f".{test}".endswith(f".{name}")]


def test_every_row_has_its_columns_and_names_what_exists() -> None:
    assert [wrong for row in ROWS for wrong in errors(row)] == []


def errors(row: Row) -> Iterator[str]:
    """What is wrong with a row of the page: an empty column, or a name that no module or test has."""
    code, named = NAME.findall(row.code), NAME.findall(row.tests)
    if not all(row) or not row.how.startswith(WORDS):
        yield f"{row.item}: a column is empty or begins with another word"
    # given something that is built, or not: there is code, and a test or the word that there is none
    if not bool(code) == (not row.how.startswith("Not built")) == (row.code != NONE):
        yield f"{row.item}: the code does not fit how it is built"
    if not (named or UNTESTED in row.tests or (row.tests == NONE and not code)):
        yield f"{row.item}: neither a test nor the word that there is none"
    yield from (f"{row.item}: {name}: {in_code(name)}" for name in code if len(in_code(name)) != 1)
    yield from (f"{row.item}: {name}: {in_tests(name)}" for name in named if len(in_tests(name)) != 1)


@pytest.mark.parametrize("author", NUMBERED)
def test_every_numbered_item_of_a_paper_has_a_row(author: str) -> None:
    said = " ".join(f"{row.item} {row.how}" for row in ROWS if row.document.startswith(author))
    assert [item for item in NUMBERED[author] if not re.search(rf"{re.escape(item)}(?!\d)", said)] == []


def test_five_documents_have_rows() -> None:
    documents = {row.document.split(",")[0].split(":")[0] for row in ROWS}
    assert documents == {"George", "Esfandiari", "Maddi", "Bolot", "Rameshwar"}


def test_what_is_wrong_is_noticed() -> None:
    assert in_code("median.pack") == ["shoal.mechanisms.selection.median"]
    assert in_code("median.nothing") == in_code("nowhere.pack") == in_tests("test_median.test_nothing") == []
    assert len(in_code("accounts.Rule")) > 1
    assert len(list(errors(Row("George", "one", "`median.nothing`", "Literal", "`test_median.test_nothing`")))) == 2
    assert len(list(errors(Row("George", "one", NONE, "Literally", "")))) == 3
    header = "| In the paper | In shoal | How | Test |\n"
    with pytest.raises(AssertionError):
        list(rows(f"## George\n{header}| one | `median.pack` | Literal |\n"))
