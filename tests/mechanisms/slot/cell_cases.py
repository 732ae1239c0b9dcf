"""What the tests of averages over a cell share: small cells, all their neighbours, and draws that can be watched."""

import itertools
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from shoal.mechanisms.grid import Grid
from shoal.mechanisms.slot.cell import CellParameters, Draws
from tests.support.effort import examples

KEY = bytes(range(32))
STEPS = 1 << 20
few = examples(15)
SPEEDS = Grid(Fraction(0), Fraction(65), STEPS)

# Full and partial arrays, a user with half of all samples and with more, samples that are not kept, one sample alone.
PATTERNS = [(1,), (2,), (3,), (1, 1), (2, 1), (3, 1), (1, 1, 1), (2, 2, 1), (1, 2, 1), (3, 1, 2), (1, 4, 1), (1,) * 6]
EPSILONS = st.fractions(Fraction(1, 1000), 1000)
COUNTS = st.lists(st.integers(1, 40) | st.integers(1, 1000), min_size=1, max_size=14)


def parameters(*, steps: int = STEPS, **more: Any) -> CellParameters:
    """A cell of speeds; where the number of grid steps is given, a cell of values that count them."""
    grid = SPEEDS if steps == STEPS else Grid(Fraction(0), Fraction(steps), steps)
    return CellParameters(grid=grid, epsilon=more.pop("epsilon", Fraction(1)), **more)


def draws(cell: bytes = b"cell", slot: int = 7) -> Draws:
    """The draws of a cell."""
    return Draws(KEY, cell, slot)


class Watched(Draws):
    """Draws no noise, and tells for which scales it was asked."""

    def __init__(self) -> None:
        self.scales: dict[str, Fraction] = {}

    def laplace(self, purpose: str, scale: Fraction, part: int = 0) -> int:
        assert purpose not in self.scales
        self.scales[purpose] = scale
        return 0


@st.composite
def cells(draw: st.DrawFn) -> list[list[int]]:
    """A cell's users and their samples."""
    counts = draw(st.lists(st.integers(1, 9), min_size=1, max_size=7))
    return [draw(st.lists(st.integers(0, STEPS), min_size=count, max_size=count)) for count in counts]


def all_cells(counts: Sequence[int], steps: int) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All values that these users' samples can have."""
    yield from itertools.product(*(itertools.product(range(steps + 1), repeat=count) for count in counts))


def farthest_neighbours(found: dict[tuple[tuple[int, ...], ...], int]) -> int:
    """The most that a number differs by between two cells in which one user's values differ, of all cells there are."""
    spans: dict[tuple[int, tuple[tuple[int, ...], ...]], list[int]] = {}
    for users, number in found.items():
        for user in range(len(users)):
            span = spans.setdefault((user, (*users[:user], *users[user + 1 :])), [number, number])
            span[:] = min(span[0], number), max(span[1], number)
    return max(high - low for low, high in spans.values())
