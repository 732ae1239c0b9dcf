"""What a worker logs has its row in docs/guides/watching.md, and every row there is something that it logs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "guides" / "watching.md"
LEVELS = {"info", "warning", "error"}
NAMED_BY_CALLERS = {"leave", "_say"}  # functions that log the event that they are given
WRITTEN = {"fail_stop", "log_lines_lost"}  # without the logger: the process ends, or stderr itself says it


def logged() -> Iterator[str]:
    """The names of all events that the code of a worker logs."""
    for path in sorted((ROOT / "shoal" / "agents").rglob("*.py")):
        for call in (node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)):
            match call:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="log"), attr=name), args=[ast.Constant(value=str(event)), *_]
                ) if name in LEVELS:
                    yield event
                case ast.Call(
                    func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(event)), *_]
                ) if name in NAMED_BY_CALLERS and "worker" in path.parts:
                    yield event


def rows() -> set[str]:
    """The events that the table of the page names."""
    section = PAGE.read_text("utf-8").partition("\n## The log\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| ([^|]*) \|", section, re.MULTILINE)
    return {event for cell in cells for event in re.findall(r"`(\w+)`", cell.partition(", kind")[0])}


def test_every_event_of_the_log_is_explained() -> None:
    assert rows() == set(logged()) | WRITTEN
