"""Which code is measured for coverage: tracing more than doubles the time of what computes, so not all of it is.

What is measured is the process of the tests, while tests of the folders that mirror packages run, and the workers that
the nursery forks. What is not: other processes that tests start, and the tests that compare whole programs with one
another or with stored bytes, which reach no line that the mirrored tests may leave to them.
"""

import os
from pathlib import Path

from coverage import Coverage

TESTS = Path(__file__).parents[1]
UNMEASURED = [TESTS / name for name in ("benchmarks", "golden", "privacy")]
_VARIABLE = "COVERAGE_PROCESS_CONFIG"  # by it, coverage starts in a new process

# What the nursery needs, so that coverage starts there; a process of pytest-xdist hands it on to nobody else.
ENVIRONMENT = {}
if _VARIABLE in os.environ and "PYTEST_XDIST_WORKER" in os.environ:
    ENVIRONMENT[_VARIABLE] = os.environ.pop(_VARIABLE)


class Scope:
    """Stops and starts the coverage of this process, if it is measured at all."""

    def __init__(self) -> None:
        self._coverage = Coverage.current()
        self._measures = True

    def enter(self, test: Path) -> None:
        """Measure, or not, what this file's tests run."""
        measures = not any(folder in test.parents for folder in UNMEASURED)
        if self._coverage is not None and measures != self._measures:
            if measures:
                self._coverage.start()
            else:
                self._coverage.stop()
            self._measures = measures
