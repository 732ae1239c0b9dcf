"""What values decide of a transaction's changelog: the bytes of numbers alone, which are what they cost at most."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.lane import lane_named
from shoal.mechanisms.slot import accounts as slots
from shoal.mechanisms.stores import packed
from shoal.models.config.file import Config
from shoal.stream.bound import Bound, BoundPartition
from shoal.stream.deltas import rolling, writing
from shoal.stream.deltas.record import PREFIX, SECTIONS_AT, read_sections
from shoal.stream.file_run import Line
from shoal.stream.kernel import stores
from tests.stream.simulation import STAMP, config
from tests.stream.units import plan_of, sums
from tests.support import backends
from tests.support.cover import in_a_loop
from tests.support.effort import examples
from tests.support.entries import held_in

HAS_KERNEL = backends.KERNEL in backends.BACKENDS
KERNELS: list[Any] = [None, *([lane_named("kernel").module] if HAS_KERNEL else [])]
SLOTTED = {"statistic": "mean", "algorithm": "baseline", "slot": "10s", "group": "g", "epsilon": 9}
LARGE = {"range": (-(10**9), 10**9), "grid": 2**28}
CONFIGS: list[Config] = [
    config(SLOTTED | LARGE | {"max_contributions": 40}, {"algorithm": "sharp", "max_contributions": 64} | LARGE),
    config(SLOTTED | {"unit": "user", "max_slots": 2, "max_groups": 2}, {"algorithm": "full", "max_contributions": 8}),
    sums(unit="user-10s", group="g", max_groups=2, max_contributions=5),
]
USERS = [*"a" * 20, "é" * 40, "\x01" * 100, *(f"user-{n}" for n in range(9))]
CELLS = [*"x" * 9, "\x01" * 30, '"' * 20, "😀" * 10]
VALUES = st.sampled_from([0.0, 1e-9, 0.5, 7.0, -3.0, 1e9, 1e300, -1e300, *[-1e9] * 6])
PATTERN = st.lists(
    st.lists(
        st.tuples(st.sampled_from(USERS), st.integers(0, 9), st.sampled_from(CELLS)), min_size=1, max_size=12
    ),
    min_size=1,
    max_size=15,
)  # fmt: skip


@pytest.fixture(params=["little at a time", "as it is"])
def sizes(request: pytest.FixtureRequest) -> Iterator[None]:
    """Small parts of rounds, in many records, or those of every day."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "as it is":
            for module in (rolling, packed, stores, slots):
                patch.setattr(module, "CHUNK", 300)
            patch.setattr(rolling, "LEAST", 100)
            patch.setattr(slots, "PIECE_BYTES", 60)
            patch.setattr(rolling, "BESIDE", 14)  # no byte more than a section needs
            patch.setattr(writing, "MOST_BYTES", 700)
        yield


def written(cfg: Config, kernel: Any, pattern: list[Any], values: list[float]) -> list[Bound]:
    machine = BoundPartition(plan_of(cfg), 0, kernel=kernel)
    machine.start(0)
    found, offset, drawn = [], 0, iter(values)
    for number, events in enumerate(pattern):
        raws = [
            orjson.dumps({"u": user, "t": 4 * number + time, "g": cell, "x": next(drawn)})
            for user, time, cell in events
        ]
        machine.process([Line(offset + n, raw, timestamp=STAMP) for n, raw in enumerate(raws)], offset + len(raws))
        offset += len(raws)
        taken = machine.take(0)
        assert taken is not None
        found.append(taken)
        for logged in (logged for accounts in machine.accounts for logged in accounts.logged):
            for period in logged.periods():
                parts = logged.pack(period, 0, 100, 10_000) if logged.size(period) else []
                assert all(len(part.entries) <= part.cost for part in parts)
    return found


def pattern_of(bound: Bound) -> list[Any]:
    """All of a changelog but numbers: what is in which record, in which order, and what is needed and what it costs."""
    found: list[Any] = [bound.first_record, bound.needs, bound.cost]
    for key, value in bound.changelog:
        if key.startswith(PREFIX):
            for section in read_sections(value or b""):
                names = [name for name, _ in held_in(section.entries, section.width)]
                found.append((key, section.kind, section.tag, section.period, names))
    return found


@in_a_loop
@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("cfg", CONFIGS)
@examples(30)
@given(st.data(), PATTERN, st.sampled_from(KERNELS))
def test_values_decide_the_bytes_of_numbers_alone_which_are_no_more_than_they_cost(
    cfg: Config, data: st.DataObject, pattern: list[Any], kernel: Any
) -> None:
    count = sum(map(len, pattern))
    one, other = (
        written(cfg, kernel, pattern, data.draw(st.lists(VALUES, min_size=count, max_size=count))) for _ in range(2)
    )
    assert [pattern_of(bound) for bound in one] == [pattern_of(bound) for bound in other]
    for bound in one:
        sections = [value[SECTIONS_AT:] for key, value in bound.changelog if key.startswith(PREFIX) and value]
        assert sum(map(len, sections)) <= bound.cost
