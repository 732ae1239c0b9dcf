"""The demo's input: real purchases, and what only the demo knows about them."""

import csv
import gzip
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Self

from shoal.agents import demo
from shoal.models.errors import InputError
from shoal.models.times import time_of_text

FILE = Path(demo.__file__).parent / "data" / "purchases.csv.gz"


def rows(path: Path = FILE) -> list[dict[str, str]]:
    """All purchases as the file has them: `customer`, `at` and `amount`.

    Raises:
        InputError: it is not there.
    """
    try:
        with gzip.open(path, "rt", encoding="ascii", newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); install shoal again: make install") from None


@dataclass(frozen=True)
class Purchases:
    """All purchases, in order of time."""

    times: list[int]  # microseconds since the epoch, ascending
    cents: list[int]  # cumulated: after the first purchase, after the second, ...
    per_customer: Counter[str]

    @classmethod
    def read(cls, path: Path = FILE) -> Self:
        """Read the file.

        Raises:
            InputError: it is not there.
        """
        made = rows(path)
        times = [time_of_text(row["at"]) or 0 for row in made]
        cents = accumulate(int(Decimal(row["amount"]) * 100) for row in made)
        return cls(times, list(cents), Counter(row["customer"] for row in made))

    def before(self, at: int) -> int:
        """Number of purchases made before an instant."""
        return bisect_left(self.times, at)

    def true_mean(self, at: int) -> float:
        """Mean amount of all purchases before an instant: every one, unclipped, in dollars.

        >>> day = 86_400_000_000
        >>> Purchases([0, day, day], [1000, 1500, 2000], Counter()).true_mean(day)
        10.0
        """
        count = self.before(at)
        return self.cents[count - 1] / count / 100

    def over_cap(self, max_contributions: int) -> int:
        """Number of purchases beyond a customer's first `max_contributions`."""
        return sum(max(0, made - max_contributions) for made in self.per_customer.values())

    def customers_with(self, made: int) -> int:
        """Number of customers who made this many purchases."""
        return sum(count == made for count in self.per_customer.values())
