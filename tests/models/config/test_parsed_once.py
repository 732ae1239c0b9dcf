"""A metric is parsed once: outside of the configuration's folder nothing reads its keys, only its parts."""

import ast
from collections.abc import Iterator
from pathlib import Path

from shoal.models.config.metric_keys import MetricKeys

PACKAGE = Path(__file__).parents[3] / "shoal"
HERE = PACKAGE / "models" / "config"


def sections_in(function: ast.AST) -> Iterator[str]:
    """Names of sections of metrics in a module or function: by annotation, and of loops over a configuration's."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            if "MetricSection" in ast.unparse(node.annotation):
                yield node.arg if isinstance(node, ast.arg) else ast.unparse(node.target)
        if isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name):
            source = ast.unparse(node.iter)
            if source.endswith(".metric") or ".sections_of(" in source:
                yield node.target.id


def test_nothing_but_the_adapter_reads_the_keys_of_a_metric() -> None:
    read = [
        f"{file.relative_to(PACKAGE)}:{node.lineno} reads {node.value.id}.{node.attr}"
        for file in sorted(PACKAGE.rglob("*.py"))
        if HERE not in file.parents
        for function in ast.walk(ast.parse(file.read_text()))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for names in [set(sections_in(function))]
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names
        if node.attr in MetricKeys.model_fields
    ]
    assert not read, "\n".join(read)
