"""What the presence of one unit moves, by brute force, and what all releases tell of it."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.linear.sides import Samples
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.statistic import Contribution
from shoal.mechanisms.sums.decays import Decay, Undecayed, Window
from shoal.mechanisms.sums.gaussian_window import RootWindow
from shoal.models.config.file import Config
from tests.mechanisms.account_cases import Ledger
from tests.mechanisms.counters.counter_cases import Injected
from tests.mechanisms.linear.presence_cases import DECAYS, KEY, NAMES, contribution, step, two_sided
from tests.support.cover import in_a_loop, some

TICK = 3_600_000_000
CAP = 2
Record = tuple[str, str, int, int]  # user, key, tick, grid index


def metric(statistic: str, **more: Any) -> Any:
    given: dict[str, Any] = {
        "name": "m", "topic": "t", "user": "u", "time": "t", "relation": "add-remove", "statistic": statistic,
        "group": "g", "groups": ["g", "h"], "every": "1h", "start": "1970-01-01", "epsilon": 1,
        "max_contributions": CAP, "max_groups": 2, **more,
    }  # fmt: skip
    if statistic not in ("count", "users"):
        given = {"value": "x", "range": (0, 1), "grid": 3} | given
    return Config.model_validate({"privacy": {"epsilon": 9}, "metric": [given]}).metric[0]


def sent(section: Any, of: LinearStatistic, stream: list[Record]) -> Counter[tuple[str, int, str]]:
    """The change of each side of each key in each tick: what bound sends of a stream, through its very accounts."""
    ledger = Ledger(lambda site: kind_of(section.parts).accounts(section.parts, of.bounder(), site))
    for user, key, tick, index in stream:
        value = of.packing.pack([index]) if of.packing is not None else index if of.statistic.name == "mean" else 0
        ledger.accounts.add(user.encode(), key, value, tick * TICK, tick * TICK)
    ledger.accounts.flush(None, idle=True)
    sides: Counter[tuple[str, int, str]] = Counter()
    for group, effective, _, block in ledger.sent:
        if block.part != 1:
            total = block.total if of.packing is None else of.packing.unpack(block.total, block.samples)
            for side, part in zip(of.sides.noised, of.sides.parts(block.samples, total), strict=True):
                sides[group or "", effective // TICK, side.draw[1]] += part
    return sides


ONCE = {"max_contributions": 9, "max_groups": 1}


@in_a_loop
@pytest.mark.parametrize(
    ("statistic", "more", "most"),
    [
        ("mean", {}, 2),
        ("count", {}, 2),
        ("variance", {}, 2),
        ("distribution", {"bins": 3}, 2),
        ("users", ONCE, 1),
        ("users", ONCE | {"decay": {"kind": "none"}}, 1),
        ("users", {"decay": {"kind": "window", "length": "1h"}}, 2),
    ],
)
def test_the_presence_of_a_unit_moves_all_sides_of_all_keys_by_its_samples_widths_at_most(
    statistic: str, more: dict[str, Any], most: int
) -> None:
    """Over streams of four records of two users, in two keys and over two ticks; a user's records all go.

    All such streams with full effort, else every fifth.
    """
    section = metric(statistic, **more)
    of: Any = LinearStatistic.of(section.parts)
    largest = 0
    records = list(product("ab", "gh", (0,) if isinstance(of.sides, Samples) else (0, 3)))
    for ticks in ((0, 0, 0, 1), (0, 1, 1, 1)):
        for chosen in some(list(product(records, repeat=4)), 801):
            stream = [(user, key, tick, index) for (user, key, index), tick in zip(chosen, ticks, strict=True)]
            there, gone = sent(section, of, stream), sent(section, of, [r for r in stream if r[0] != "a"])
            largest = max(largest, sum(abs(there[at] - gone[at]) for at in there | gone))
    assert largest == of.sums.width == most * of.sides.width


@in_a_loop
@pytest.mark.parametrize("decay", DECAYS, ids=repr)
@pytest.mark.parametrize("statistic", NAMES)
def test_a_unit_with_all_its_samples_pays_epsilon_and_none_pays_more(statistic: str, decay: Decay) -> None:
    """What a sample costs at each draw, over all steps; samples of several keys and steps cost at most the sum."""
    of = two_sided(statistic, decay, m=3, epsilon=Fraction(7, 3))
    sums: Any = of.sums
    steps = [sum(Fraction(node.coefficient) / node.scale for node in sums.column(s)) for s in range(1, 70)]
    samples = range(of.grid.steps + 1)
    costs = [sum(map(abs, of.sides.parts(1, contribution(of, [i]).total))) * max(steps) for i in samples]
    assert of.max_contributions * max(costs) == of.epsilon
    if len(of.sides.noised) > 1:  # whatever the sample is
        assert len(set(costs)) == 1


def test_gaussian_windows_are_made_for_one_side_of_all_samples_which_no_mixture_of_sides_exceeds() -> None:
    """The L2 of a sample's parts, for every sample; `RootWindow` multiplies it by its matrix' longest column."""
    for statistic in NAMES:
        of = two_sided(statistic, Window(1024), delta=Fraction(1, 100), m=3)
        assert isinstance(of.sums, RootWindow)
        assert of.rho == of.sums.tree.rho
        norms = [math.hypot(*of.sides.parts(1, contribution(of, [i]).total)) for i in range(of.grid.steps + 1)]
        assert of.sums.width == 3 * max(norms)


# ---------------------------------------------------------------- all that is published, by enumeration

FEW = 6  # draws are from -FEW to FEW


def law(of: LinearStatistic, stream: list[list[int]]) -> dict[Any, float]:
    """The law of all that is published of a stream, by all values of all draws; the tails are left out."""
    injected = Injected()
    found: dict[Any, float] = {}
    with injected.instead():
        publish(of, stream)
        names = list(injected.asked)
        rates = [math.exp(-1 / next(iter(injected.scales[subkey]))) for subkey, _ in names]
        weights = [{z: (1 - x) / (1 + x) * x ** abs(z) for z in range(-FEW, FEW + 1)} for x in rates]
        for draws in product(range(-FEW, FEW + 1), repeat=len(names)):
            injected.values = dict(zip(names, draws, strict=True))
            published = publish(of, stream)
            found[published] = found.get(published, 0.0) + math.prod(
                weight[z] for weight, z in zip(weights, draws, strict=True)
            )
    return found


def publish(of: LinearStatistic, stream: list[list[int]]) -> Any:
    releaser, published = of.releaser(KEY, b""), []
    for samples in stream:
        made = step(of, releaser, samples)
        published.append(str((made.value, made.noise_sd, made.low, made.high, made.counts)))
    return tuple(published)


@in_a_loop
@pytest.mark.parametrize(
    ("statistic", "decay", "others", "unit"),
    [
        ("mean", Window(1), [[0]], [[1]]),
        ("mean", Undecayed(1), [[]], [[1]]),
        ("sum", Window(1), [[1]], [[1, 0]]),
        ("count", Undecayed(2), [[0], []], [[0], [0]]),
        ("users", Window(1), [[], [0]], [[0], [0]]),
        ("variance", Window(1), [[1]], [[0]]),
        ("distribution", Window(1), [[1]], [[0]]),
    ],
)
def test_no_event_tells_a_stream_from_that_without_a_unit_by_more_than_epsilon(
    statistic: str, decay: Decay, others: list[list[int]], unit: list[list[int]]
) -> None:
    """Of the very numbers in a release: value, its bars, count; and some event does tell so much."""
    m = sum(map(len, unit))
    of = two_sided(statistic, decay, epsilon=2, steps=1, m=m, ends=(Fraction(0), Fraction(1)))
    without, there = law(of, others), law(of, [a + b for a, b in zip(others, unit, strict=True)])
    left_out = max(1 - sum(law.values()) for law in (without, there))
    assert left_out < 0.01
    for one, other in ((without, there), (there, without)):
        beyond = sum(max(p - math.exp(2) * other.get(event, 0.0), 0.0) for event, p in one.items())
        assert beyond <= math.exp(2) * left_out  # what is left out of the other law, at most
    ratios = [abs(math.log(p / there[event])) for event, p in without.items() if p > 1e-3 and event in there]
    assert max(ratios) == pytest.approx(2)


def test_newcomers_of_a_key_are_no_samples() -> None:
    of = two_sided("count", Undecayed(), epsilon=10**9)
    releaser = of.releaser(KEY, b"")
    releaser.add(Contribution(0, "", 1, 0, 7, 7))
    assert step(of, releaser, [0]).value == 1
