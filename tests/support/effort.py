"""How much the tests try: a test says how often, and an effort multiplies it.

`SHOAL_TEST_EFFORT` is 1 unless it is set. `make test` sets `SHORT`, `make quick` a tenth, and `make test-long` `LONG`.
Mutants are tried with `SHORT`, and with `LONG` where only the long suite catches them.
"""

import os

from hypothesis import settings

VARIABLE = "SHOAL_TEST_EFFORT"
EFFORT = float(os.environ.get(VARIABLE, "1"))
SHORT, LONG = 0.4, 5.0
FEWEST = 3  # so little effort that a law is no longer tried does not exist


def tries(number: int) -> int:
    """How often to try, at this effort, what a test says that it tries so often."""
    return max(min(number, FEWEST), round(number * EFFORT))


def examples(number: int) -> settings:
    """The settings of a property that is tried on so many examples, times the effort."""
    return settings(max_examples=tries(number))
