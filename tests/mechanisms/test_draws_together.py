"""Groups that draw their noise together: the same releases and states as each by itself, whatever comes when."""

from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.mechanisms import groups as module
from shoal.mechanisms.continual_mean.coordinates import Coordinates
from shoal.mechanisms.continual_mean.full import Full
from shoal.mechanisms.continual_mean.multi_tree import MultiTree
from shoal.mechanisms.continual_mean.naive import Naive
from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.continual_mean.single_tree import SingleTree
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.groups import DrawnTogether, EachAlone
from shoal.mechanisms.noise import batch
from shoal.mechanisms.statistic import Contribution
from tests.mechanisms.mechanism_cases import KEY
from tests.support.effort import examples

COMMON: dict[str, Any] = {
    "grid": Grid(Fraction(0), Fraction(1), 16), "epsilon": Fraction(40), "max_contributions": 4, "users": 6,
}  # fmt: skip
GAUSSIAN = Naive(**COMMON, rho=Fraction(3))
MEANS: dict[str, Any] = {
    "naive": Naive(**COMMON),
    "gaussian": GAUSSIAN,
    "full": Full(**COMMON),
    "single-tree": SingleTree(**COMMON, prior=Fraction(1, 2)),
    "multi-tree": MultiTree(**COMMON, prior=Fraction(1, 2)),
    "few-users": MultiTree(**COMMON | {"epsilon": Fraction(2000)}, delta=Fraction(1, 10)),
    "sharp": Sharp(**COMMON),
    "coordinates": Coordinates((Naive(**COMMON), Naive(**COMMON))),
}
GROUPS = "abcdefg"
# Of each tick and each of its groups how many units come, each with how many samples.
TICKS = st.lists(
    st.dictionaries(st.sampled_from(GROUPS), st.lists(st.integers(1, 4), min_size=1, max_size=4), min_size=1),
    min_size=1, max_size=5,
)  # fmt: skip


def contributions(mean: Any, tick: int, group: str, units: list[int]) -> list[Contribution]:
    """What these units send in a tick, in canonical order."""
    bounder, sent = mean.bounder(), []
    for unit, samples in enumerate(units):
        account = 0
        for value in range(samples):
            quantized = (5 * unit + 3 * value + tick) % 17
            grid_index = mean.packing.pack([quantized, 16 - quantized]) if mean.packing else quantized
            account, block = bounder.add(account, grid_index)
            if block is not None:
                total = mean.packing.unpack(block.total, block.samples) if mean.packing else block.total
                name = f"{tick}-{group}-{unit}"
                sent.append(Contribution(tick, name, block.number, block.level, block.samples, total))
    return sorted(sent, key=lambda row: row[:4])


def states(groups: EachAlone[Any]) -> dict[str, Any]:
    return {group: groups.head(group) for group in GROUPS}


def closings(groups: EachAlone[Any], mean: Any, ticks: list[dict[str, list[int]]]) -> Iterator[Any]:
    """Each group that is closed, what the changelog then lacks, and the heads of all groups."""
    for tick, came in enumerate(ticks):
        rows = [(group, contributions(mean, tick, group, came[group])) for group in sorted(came)]
        for closed in groups.close(tick, rows):
            yield closed, list(groups.changes()), states(groups)


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("together", [2, 1000])
@examples(15)
@given(ticks=TICKS)
@example(ticks=[dict.fromkeys(GROUPS, [4] * 20)] * 3)  # priors are chosen, trees are full
def test_groups_that_draw_together_are_as_each_alone(
    name: str, together: int, ticks: list[dict[str, list[int]]]
) -> None:
    mean = MEANS[name]
    make = partial(mean.releaser, KEY)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(module, "TOGETHER", together)
        monkeypatch.setattr(batch, "SINGLY", 1)  # the groups of a test are few
        monkeypatch.setattr(batch, "FEW", 0)
        # after every group a transaction may end, with the state of this group and of all that were closed before
        found = list(closings(DrawnTogether(make), mean, ticks))
    assert found == list(closings(EachAlone(make), mean, ticks))
