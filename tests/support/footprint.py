"""Plugin of pytest that writes down which files of the checkout a run of tests imports or opens in its own process.

    SHOAL_TEST_FOOTPRINT=FILE python -m pytest -p tests.support.footprint tests/test_data.py

What conftest.py files import before tests are collected is left out. Processes that a test starts are not seen.
"""

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
VARIABLE = "SHOAL_TEST_FOOTPRINT"  # names the file to write

_opened: set[str] = set()
_before: set[str] = set()


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    """Keep the path of a file that is opened; Python calls it for every event that it audits."""
    if event == "open" and isinstance(arguments[0], str):
        _opened.add(os.path.abspath(arguments[0]))


def imported() -> set[str]:
    """Files of all modules that are imported."""
    return {str(file) for module in [*sys.modules.values()] if (file := getattr(module, "__file__", None))}


def pytest_configure() -> None:
    sys.addaudithook(_watch)


def pytest_collection() -> None:
    """Leave out what every run imports: tests/conftest.py, which all tests depend on, has been read by now."""
    _before.update(imported())
    _opened.clear()


def pytest_sessionfinish() -> None:
    files = [Path(file) for file in (imported() | _opened) - _before]
    inside = sorted(str(file.relative_to(ROOT)) for file in files if file.is_relative_to(ROOT))
    Path(os.environ[VARIABLE]).write_text(json.dumps(inside))
