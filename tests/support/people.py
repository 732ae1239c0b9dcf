"""Events of invented people: seeded, in time order, some people far busier than others."""

from collections.abc import Sequence

import numpy as np
import orjson

START = 1_000_000_000  # 2001-09-09: event time is not wall time


def visits(
    count: int,
    *,
    people: int = 60,
    seed: int = 1,
    step: float = 60.0,
    cities: Sequence[str] = ("A", "B", "C", "D", "E"),
) -> list[bytes]:
    """Visits, on average a `step` of seconds apart, several of them often within one second."""
    draw = np.random.default_rng(seed)
    who = (people * draw.random(count) ** 1.5).astype(int)
    times = START + np.cumsum(draw.exponential(step, count)).astype(int)
    amounts = np.round(draw.normal(30 + who % 40, 10), 2)
    homes = draw.integers(0, len(cities), people)
    return [
        orjson.dumps({"who": f"p{person}", "at": int(time), "x": float(x), "city": cities[homes[person]]})
        for person, time, x in zip(who, times, amounts, strict=True)
    ]
