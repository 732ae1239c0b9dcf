"""How much the tests try: what a test says is for `make test`, and an effort multiplies it.

`SHOAL_TEST_EFFORT` is 1 unless it is set. `make quick` sets less; `make test-long` and mutants are run with `LONG`.
"""

import os

from hypothesis import settings

VARIABLE = "SHOAL_TEST_EFFORT"
EFFORT = float(os.environ.get(VARIABLE, "1"))
LONG = 5.0
FEWEST = 3  # so little effort that a law is no longer tried does not exist


def tries(number: int) -> int:
    """How often to try, at this effort, what `make test` tries so often."""
    return max(min(number, FEWEST), round(number * EFFORT))


def examples(number: int) -> settings:
    """The settings of a property that `make test` tries on so many examples."""
    return settings(max_examples=tries(number))
