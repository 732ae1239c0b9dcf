"""What the log lines of a worker may tell: each field of each is known here, and with it what it is a function of."""

import ast
from pathlib import Path

from shoal.agents.worker import process

AGENTS = Path(process.__file__).parent.parent
# Fields that tell no more than configuration, what is published, who owns what and who answers. Numbers that grow with
# events, as how long a takeover took, stand in `unless_discreet` (shoal/agents/kafka/fail_stop.py).
KNOWN = {
    "all", "brokers", "doing", "generation", "gone", "kind", "message", "metric", "new", "partition", "reason",
    "warning",
}  # fmt: skip
# How long nothing answered, or nothing was owned: nobody's events keep brokers away.
OF_OUTAGES = {("brokers_back", "seconds"), ("owns_nothing", "seconds")}

# What is installed, and which topics' metrics the kernel knows.
OF_LANES = {("lane", field) for field in ("lane", "kernel", "version", "topics_by_twin")}
# Whether a right is missing is the operator's doing. When it is seen depends on how much was written, which is pattern;
# where presence is protected it is seen at a takeover (tests/agents/kafka/test_trimmer.py).
OF_RIGHTS = {("not_trimmed", "topic")}


def logged() -> set[tuple[str, str]]:
    """Event and field of every call of a logger."""
    found = set()
    for path in AGENTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is_logger(node.func):
                (event, *_) = node.args
                name = event.value if isinstance(event, ast.Constant) else "*"
                found |= {(str(name), word.arg or ast.unparse(word.value).partition("(")[0]) for word in node.keywords}
    return found


def _is_logger(called: ast.Attribute) -> bool:
    levels = {"debug", "info", "warning", "error", "critical", "exception", "log"}
    return called.attr in levels and ast.unparse(called.value) in ("log", "structlog.get_logger('shoal.worker')")


def test_no_log_line_has_a_field_of_which_nobody_has_said_what_it_tells() -> None:
    found = logged()
    assert {("owns", "unless_discreet"), ("stopped", "unless_discreet"), ("retention", "warning")} <= found
    unknown = {(event, field) for event, field in found if field not in KNOWN} - OF_OUTAGES - OF_LANES - OF_RIGHTS
    assert unknown == {("owns", "unless_discreet"), ("stopped", "unless_discreet"), ("*", "details")}
