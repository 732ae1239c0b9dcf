"""`make quick` may leave out a test only if no change of a file that the test uses is overlooked.

Each test file runs in a process of its own, without its broker tests. Every file of the checkout that this process
imports or opens must select the test file (tests/support/selection.py). One folder alone:

    python -m pytest -n2 --dist=load tests/long/imports.py -k mechanisms/slot
"""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.support import footprint
from tests.support.effort import VARIABLE
from tests.support.impact import NO_TESTS, STORE, changes, left_out
from tests.support.selection import Project

ROOT = Path(__file__).parents[2]
FILES = frozenset(changes(ROOT).files)
PROJECT = Project(ROOT, FILES, store=STORE)
TESTS = sorted(test for test in PROJECT.tests if not test.startswith("tests/kafka/"))
LEAST = "0.1"  # effort; with less, tests of random numbers may fail
affected = cache(PROJECT.affected)


def used(test: str, folder: Path) -> frozenset[str]:
    """Files of the checkout that a test file uses, when its tests without a broker run alone."""
    report = folder / "footprint.json"
    command = [sys.executable, "-m", "pytest", "-q", "-p", footprint.__name__, "-m", "not kafka and not long"]
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = ours | {VARIABLE: LEAST, footprint.VARIABLE: str(report)}
    done = subprocess.run(
        [*command, *left_out(PROJECT.tests, [test]), "tests"], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode in (0, NO_TESTS), done.stdout[-3000:] + done.stderr[-3000:]
    return FILES.intersection(json.loads(report.read_text()))


@pytest.mark.parametrize("test", TESTS)
def test_every_file_that_a_test_uses_selects_it(test: str, tmp_path: Path) -> None:
    unseen = sorted(path for path in used(test, tmp_path) if test not in affected(path))
    assert not unseen, f"{test} uses files that do not select it; name them in the test, or add a rule to selection.py"
