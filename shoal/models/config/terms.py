"""Terms: what a metric version keeps from the day of its registration, though no key of the file says it.

A new version gets the newest of each. A registered one keeps what its parameters say, for ever.

    reading    how its events are read (reading.py)
    median     how the private medians of the algorithm full are made: 1, as many arrays as printed; 2, half of them
    epoch      how often the clocks of its topic had been restarted (`shoal restart-clock`) when it was registered
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from shoal.mechanisms.spec import FIRST_MEDIAN, NEWEST_MEDIAN
from shoal.models.config.reading import FIRST, NEWEST


class Terms(NamedTuple):
    """The terms of one metric version."""

    reading: int = NEWEST
    median: int = NEWEST_MEDIAN
    epoch: int = 0

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> "Terms":
        """Those that a registered version's parameters say.

        Raises:
            ValueError: they are terms of a later version of shoal.
        """
        has_median = parameters.get("algorithm") == "full"
        terms = cls(
            parameters.get("reading", FIRST),
            parameters.get("median", FIRST_MEDIAN if has_median else NEWEST_MEDIAN),
            parameters.get("epoch", 0),
        )
        if terms.reading not in range(FIRST, NEWEST + 1) or terms.median not in range(FIRST_MEDIAN, NEWEST_MEDIAN + 1):
            raise ValueError(f"{terms} are of a later version")
        return terms

    def said(self, algorithm: str) -> dict[str, int]:
        """What the parameters of a version with this algorithm say of them: nothing of the first ones."""
        said = {} if self.reading == FIRST else {"reading": self.reading}
        if algorithm == "full" and self.median != FIRST_MEDIAN:
            said["median"] = self.median
        return said | ({"epoch": self.epoch} if self.epoch else {})
