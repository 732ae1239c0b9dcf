"""What stands between a mean and the stream where releases say what they withhold: it counts, and hands on the rest."""

from fractions import Fraction
from typing import Any

import pytest

from shoal.mechanisms.accounts import Site
from shoal.mechanisms.continual_mean.accounts import MeanAccounts, Rule
from shoal.mechanisms.continual_mean.blocks import BlockBounder
from shoal.mechanisms.continual_mean.coordinates import Coordinates
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.mechanisms.continual_mean.subgaussian import Subgaussian
from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.statistic import Contribution
from shoal.mechanisms.withheld import LEVEL, LONE_COUNT, CountingAccounts, CountingMean
from shoal.models.config.metric import MetricSection
from tests.mechanisms.account_cases import Ledger
from tests.mechanisms.mechanism_cases import KEY, Sample, contributions, json_able, mean, means, subgaussian
from tests.support.cover import in_a_loop

MEANS = [subgaussian(cls) if cls is Subgaussian else cls for cls in means()]
every_mean = pytest.mark.parametrize("cls", MEANS, ids=[cls.name for cls in MEANS])
SAMPLES = [Sample(at // 8, f"{at % 5:032x}", at * 104729 % 1000) for at in range(80)]


def lone(count: int) -> Contribution:
    """What bound sends of so many samples that send nothing else."""
    return Contribution(0, "", 0, LEVEL, count, 0)


@in_a_loop
@every_mean
def test_blocks_never_have_the_level_of_lone_counts(cls: type[MeanParameters]) -> None:
    bounder, account, levels = mean(cls, m=4096).bounder(), 0, set()
    for _ in range(4096):
        account, block = bounder.add(account, 1)
        levels |= {block.level} if block else set()
    assert 0 <= max(levels) < 40 < LEVEL < 256


@in_a_loop
@every_mean
def test_its_bounder_sends_something_of_each_sample_and_merges_nothing_else(cls: type[MeanParameters]) -> None:
    parameters = mean(cls)
    plain, counting = parameters.bounder(), CountingMean(parameters).bounder()
    assert counting.max_contributions == plain.max_contributions
    assert counting.merges
    assert counting.parts == max(1, plain.parts)
    one = other = 0
    for value in range(16):
        one, block = plain.add(one, value)
        other, told = counting.add(other, value)
        assert (other, told) == (one, block or LONE_COUNT)
        assert plain.merges or block is None or block.part is None  # what has a part would be merged now


@in_a_loop
@every_mean
def test_its_releaser_has_the_mean_s_state_and_one_number(cls: type[MeanParameters]) -> None:
    # given a mean, beside it one that is told of lone counts too, and a third that goes on from its state
    parameters = mean(cls, epsilon=Fraction(700))
    plain, counting = parameters.releaser(KEY, b"g"), CountingMean(parameters).releaser(KEY, b"g")
    restored = CountingMean(parameters).releaser(KEY, b"g")
    sent = contributions(parameters, SAMPLES)
    for number, contribution in enumerate(sent, start=1):
        assert counting.add(lone(3)) == ()
        assert [*counting.add(contribution), *counting.close()] == [*plain.add(contribution), *plain.close()]
        assert counting.head() == [4 * number, plain.head()]
        assert json_able(counting.head())
    assert counting.kept == plain.kept
    assert counting.levels == getattr(plain, "levels", [])
    restored.restore(counting.head(), list(counting.kept.values()))
    assert restored.head() == counting.head()
    assert restored.estimate() == counting.estimate()
    assert counting.take_changes() == plain.take_changes()


@pytest.mark.parametrize("count", [1, 2])
def test_all_else_about_the_mean_is_the_mean_s(count: int) -> None:
    cls = next(cls for cls in means() if cls.name == "naive")
    parts: Any = tuple(mean(cls, m=4, rho=Fraction(1, count), noise_kind="gaussian") for _ in range(count))
    one = parts[0] if count == 1 else Coordinates(parts)
    told = CountingMean(one)
    assert (told.grids, told.epsilon) == (one.grids, one.epsilon)
    assert (told.rho, told.chosen()) == (Fraction(1), ["gaussian"])
    assert told.packing == one.packing
    assert told.quantize([0.3, 2]) == one.quantize([0.3, 2])


def test_what_is_published_is_said_in_words() -> None:
    given = {
        "name": "m", "topic": "t", "user": "u", "value": "x", "statistic": "mean", "range": [0, 1], "epsilon": 1,
        "max_contributions": 9, "every": "1h",
    }  # fmt: skip
    plain, telling = (MetricSection.model_validate(given | {"withheld": says}) for says in (False, True))
    *clauses, said = ContinualMean.clauses(telling.parts, "loss")
    assert clauses == list(ContinualMean.clauses(plain.parts, "loss"))
    assert said == "each release says how many samples came and do not count, or not yet, and what share they are"
    assert isinstance(statistic_of(telling.parts), CountingMean)
    assert statistic_of(plain.parts) == ContinualMean.mean(telling.parts)


def test_its_accounts_hold_what_the_mean_s_hold() -> None:
    """A user's samples up to the cap, in as many groups as they may be in; the rest is only counted."""

    def make(site: Site) -> CountingAccounts:
        rule = Rule(max_contributions=4, groups=1)
        return CountingAccounts(MeanAccounts(rule, BlockBounder(4).add, site), site.send)

    ledger = Ledger(make)

    def add(user: bytes, group: str) -> str | None:
        return ledger.accounts.add(user, group, 5, 0, 0)

    assert [add(b"u", "a") for _ in range(6)] == [None] * 4 + ["over_cap"] * 2
    assert add(b"u", "b") == "groups_left_out"
    assert add(b"stranger", "a") == "wrong-partition"  # a dead letter, which has not come
    assert [sent.block for sent in ledger.sent].count(LONE_COUNT) == 3
    assert {sent.group for sent in ledger.sent if sent.block == LONE_COUNT} == {"a", "b"}
    ledger.accounts.flush(0, idle=True)
    ledger.commit()
    ledger.crash()
    assert ledger.accounts.sizes == [1, 1]
    assert (ledger.accounts.count(b"u", "a"), ledger.accounts.count(b"u", "b")) == (4, None)
    assert [(each.place, each.samples) for each in ledger.accounts.of_user(b"u")] == [("a", 4)]
    assert add(b"u", "a") == "over_cap"
