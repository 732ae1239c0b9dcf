"""Whatever ends a worker has its row in docs/reference/runbook.md, and every row there is something that ends a worker.

A text that is new needs a row; a row whose text has gone must go. `...` in a row stands for what the source fills in.
"""

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILLED = "..."
HEADING = "## What ends a worker"


@functools.cache
def texts() -> dict[str, str]:
    """Text -> where it stands, of every FailStop; what only puts a place before another text is left out."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted((ROOT / "shoal").rglob("*.py"))}
    makers = {
        node.name: returned
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and (returned := returned_texts(node))
    }
    found: dict[str, str] = {}
    for path, tree in trees.items():
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            for call in calls(function):
                text = spelled(call.args[0], function, makers)
                if len(re.findall(r"[a-z]{2,}", text)) > 1:
                    found[text] = f"{path.relative_to(ROOT)}:{call.lineno}"
    return found


def calls(function: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "FailStop":
            yield node


def returned_texts(function: ast.FunctionDef) -> list[ast.expr]:
    """What a function that makes texts returns."""
    returns = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
    return [value for value in returns if isinstance(value, ast.JoinedStr)]


def spelled(node: ast.expr, function: ast.AST, makers: dict[str, list[ast.expr]]) -> str:
    """The text as far as it stands in the source."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(spelled(part, function, makers) for part in parts)
        case ast.FormattedValue(value=value):
            return spelled(value, function, makers)
        case ast.Call(func=ast.Name(id=name)) if name in makers:
            return "\n".join(spelled(text, function, {}) for text in makers[name])
        case ast.Name(id=name):
            for tested in ast.walk(function):
                match tested:
                    case ast.NamedExpr(target=ast.Name(id=target), value=ast.Call() as call) if target == name:
                        return spelled(call, function, makers)
            for assigned in ast.walk(function):
                if isinstance(assigned, ast.Assign) and isinstance(assigned.value, ast.JoinedStr | ast.Constant):
                    if [target.id for target in assigned.targets if isinstance(target, ast.Name)] == [name]:
                        return spelled(assigned.value, function, makers)
    return FILLED


def rows() -> list[str]:
    """The phrases in the first column of the table."""
    section = (ROOT / "docs/reference/runbook.md").read_text("utf-8").partition(HEADING)[2]
    table = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    return [phrase for line in table for phrase in re.findall(r"`([^`]+)`", line.split("|")[1])]


def test_every_text_that_ends_a_worker_has_its_row() -> None:
    phrases = rows()
    unexplained = {text: at for text, at in texts().items() if not any(phrase in text for phrase in phrases)}
    assert unexplained == {}, f"docs/reference/runbook.md, {HEADING}: add a row for each"


def test_every_row_is_a_text_that_ends_a_worker() -> None:
    found, phrases = texts(), rows()
    assert len(phrases) == len(set(phrases))
    assert [phrase for phrase in phrases if not any(phrase in text for text in found)] == []


def test_every_row_says_what_happened_how_to_see_it_and_what_to_do() -> None:
    section = (ROOT / "docs/reference/runbook.md").read_text("utf-8").partition(HEADING)[2]
    table = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    assert table
    assert [row for row in table if len(row) != 4 or not all(cell.strip() for cell in row)] == []


def test_texts_are_found_where_they_are_not_spelled_on_the_spot() -> None:
    found = "\n".join(texts())
    assert "the records to read next are not in the topic" in found  # of a variable
    assert "was made anew: it is not the one" in found  # of a function
