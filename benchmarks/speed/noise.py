"""Exact noise: draws per second of processor time, one by one and in blocks, which are the same numbers."""

import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from benchmarks import figures
from benchmarks.speed.context import Context
from benchmarks.speed.summary import Spread, cell
from shoal.mechanisms.counters.square_root import SquareRoot, draws, prefixes
from shoal.mechanisms.noise.gaussian import DiscreteGaussian
from shoal.mechanisms.noise.laplace import DiscreteLaplace

KEY = bytes(range(32))
SAMPLERS: dict[str, DiscreteLaplace | DiscreteGaussian] = {
    "discrete Laplace, scale 10": DiscreteLaplace(10, KEY),
    "discrete Laplace, scale 2^25": DiscreteLaplace(1 << 25, KEY),
    "discrete Laplace, scale 2^35": DiscreteLaplace(1 << 35, KEY),
    "discrete Laplace, scale 2^45": DiscreteLaplace(1 << 45, KEY),
    "discrete Laplace, scale 2^60": DiscreteLaplace(1 << 60, KEY),
    "discrete Gaussian, sigma 10": DiscreteGaussian(100, KEY),
    "discrete Gaussian, sigma 2^35": DiscreteGaussian(1 << 70, KEY),
    "discrete Gaussian, sigma 2^63": DiscreteGaussian(1 << 126, KEY),
}
TREE = SquareRoot(1 << 16, 1 << 20, Fraction(1), Fraction(1, 10**6))


def rate(count: int, work: Callable[[], object]) -> float:
    """How many per second of processor time."""
    began = time.process_time()
    work()
    return count / (time.process_time() - began)


def one_round(few: int, many: int) -> dict[str, dict[str, float]]:
    """Everything once; a block is checked to be what it claims."""
    found = {}
    for name, noise in SAMPLERS.items():
        assert noise.draw_block(0, 100).tolist() == [noise.draw(index) for index in range(100)]
        found[name] = {
            "one by one": rate(few, lambda noise=noise: [noise.draw(index) for index in range(few)]),  # type: ignore[misc]
            "in blocks": rate(many, lambda noise=noise: noise.draw_block(0, many)),  # type: ignore[misc]
        }
    whole = rate(TREE.capacity, lambda: list(prefixes(TREE.root, draws(TREE, KEY))))
    found["square-root counter of 2^16 elements"] = {"in blocks": whole}
    return found


def measure(context: Context) -> dict[str, Any]:
    """Some rounds."""
    few, many, rounds = (2_000, 100_000, 1) if context.quick else (20_000, 1_000_000, context.rounds or 3)
    return {"few": few, "many": many, "rounds": [one_round(few, many) for _ in range(rounds)]}


def tables(data: Mapping[str, Any]) -> str:
    """A line for each distribution."""
    rows = []
    for name, rates in data["rounds"][0].items():
        texts = {how: cell(Spread.of([one[name][how] for one in data["rounds"]]), 1000) for how in rates}
        rows.append((name, texts.get("one by one", "–"), texts["in blocks"]))
    about = f"{data['many']:,} draws in blocks, {data['few']:,} one by one, one core."
    header = ("thousand draws per CPU-second", "one by one", "in blocks")
    return f"{about}\n\n{figures.table(header, rows)}"
