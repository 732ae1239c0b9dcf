"""A plugin of pytest that writes down what failed, how, and whose code it was that ran.

It stands in for tests/conftest.py, which starts servers: Hypothesis derandomised, but a failing example is not made
smaller; of the databases SQLite alone.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import Phase, settings

REPORT = "SHOAL_MUTANT_REPORT"

settings.register_profile(
    "mutants", derandomize=True, deadline=None, report_multiple_bugs=False, phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("mutants")

_failed: list[dict[str, str]] = []
_passed: list[str] = []
_collected: list[str] = []


@pytest.fixture(params=["sqlite"])
def database_url(tmp_path: Path) -> str:
    """An empty database."""
    return f"sqlite:///{tmp_path / 'audit.db'}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[pytest.TestReport]:
    report: pytest.TestReport = yield  # type: ignore[assignment,misc]
    if call.excinfo is not None:
        kind = "assertion" if call.when == "call" and is_assertion(call.excinfo.value) else call.excinfo.typename
        _failed.append({"test": item.nodeid, "when": report.when, "kind": kind, "said": str(call.excinfo.value)})
    elif call.when == "call":
        _passed.append(item.nodeid)
    return report  # type: ignore[return-value]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _failed.append({"test": report.nodeid, "when": "collect", "kind": "collection", "said": report.longreprtext})


@pytest.hookimpl(trylast=True)  # after tests are deselected by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _collected.extend(item.nodeid for item in items)


def is_assertion(error: BaseException) -> bool:
    """Whether a test's own expectation did not hold; of a group, whether that is so of all."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_assertion(one) for one in error.exceptions)
    return isinstance(error, AssertionError | pytest.fail.Exception)


def pytest_sessionfinish() -> None:
    modules = {
        name: str(module.__file__)
        for name, module in sys.modules.items()
        if name.partition(".")[0] in ("shoal", "shoal_kernel", "tests") and getattr(module, "__file__", None)
    }
    report = {"collected": _collected, "failed": _failed, "passed": _passed, "modules": modules}
    Path(os.environ[REPORT]).write_text(json.dumps(report))
