"""How much the tests try: what a test says is for `make test`, and an effort multiplies it.

`SHOAL_TEST_EFFORT` is 1 unless it is set. `make quick` sets less, `make test-long` more.
"""

import os

from hypothesis import settings

EFFORT = float(os.environ.get("SHOAL_TEST_EFFORT", "1"))
FEWEST = 3  # so little effort that a law is no longer tried does not exist


def tries(number: int) -> int:
    """How often to try, at this effort, what `make test` tries so often."""
    return max(min(number, FEWEST), round(number * EFFORT))


def examples(number: int) -> settings:
    """The settings of a property that `make test` tries on so many examples."""
    return settings(max_examples=tries(number))
