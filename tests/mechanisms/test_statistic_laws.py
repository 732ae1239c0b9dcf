"""The laws of the interface, for every mean algorithm that is found in the package."""

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.continual_mean import blocks
from shoal.mechanisms.continual_mean.full import Full
from shoal.mechanisms.continual_mean.mean import MeanParameters
from shoal.mechanisms.continual_mean.sharp import Sharp
from shoal.mechanisms.continual_mean.statistic import ALGORITHMS
from shoal.mechanisms.continual_mean.subgaussian import Subgaussian
from shoal.mechanisms.continual_mean.wishful import Wishful
from shoal.mechanisms.noise import keyed
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.statistic import Contribution, Releaser
from tests.mechanisms.counters.counter_cases import noise_in_release
from tests.mechanisms.mechanism_cases import (
    KEY,
    Sample,
    by_tick,
    contributions,
    few_users,
    has,
    json_able,
    knows,
    lowest,
    mean,
    means,
    merged,
    modules,
    play,
    play_ticks,
    subgaussian,
)
from tests.support.cover import covered, in_a_loop

STEPS = 1 << 20


@dataclass(frozen=True, kw_only=True)
class SharpOnBlocks(Sharp):
    """The sharp mean for so many samples that blocks pay; with an epsilon of 700 octaves open, too."""

    name = "sharp, blocks"
    horizon: int | None = 2200


ALL = sorted(means(), key=lambda cls: cls.name)
REGISTERED = [cls for cls in ALL if cls is not Subgaussian]  # it stands for sharp where there is a sigma
PLAIN = REGISTERED + [subgaussian(cls) for cls in ALL if has(cls, "sigma")]
CHOOSING = [few_users(cls) for cls in ALL if has(cls, "prior")]
KINDS: list[type[MeanParameters]] = [*PLAIN, *CHOOSING, SharpOnBlocks]
every_mean = pytest.mark.parametrize("cls", KINDS, ids=[cls.name for cls in KINDS])
every_epsilon = pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(50), Fraction(700), Fraction(10**6)])


def stream(units: int = 12, each: int = 16) -> list[Sample]:
    """Units with unequal numbers of samples, interleaved; several share a tick, and some of them a value."""
    samples, at = [], 0
    for j in range(each):
        for i in range(units):
            if i % 3 == 0 or j < 2 + i:
                samples.append(Sample(at // 7, f"{i:032x}", (i % 4 * 7919 + j * 104729) * 5 % STEPS))
                at += 1
    return samples


STREAM = stream()
# Three units with three blocks each, in whose first samples later units find a sharp mean that waits for them.
LONG = [Sample(at // 5, f"{at // 200:032x}", at * 104729 * 5 % STEPS) for at in range(600)] + [
    Sample((600 + at) // 5, f"{3 + at % 3:032x}", at * 130363 * 5 % STEPS) for at in range(600)
]


def case(cls: type[MeanParameters], epsilon: Fraction) -> tuple[MeanParameters, list[Sample]]:
    """An algorithm, and enough samples for all that it does."""
    if cls is SharpOnBlocks:
        return mean(cls, epsilon=epsilon, m=1024), LONG
    return mean(cls, epsilon=epsilon), STREAM


def own(parameters: MeanParameters, sent: Contribution) -> int:
    """The sum of a contribution's samples; one that closes a block of sharp has the block's sum above it."""
    if isinstance(parameters, Sharp) and sent.samples == 1:
        return int(sent.total) % (1 << parameters.buckets.bits)
    return int(sent.total)


def test_every_algorithm_is_registered_by_its_name() -> None:
    assert {cls.name: cls for cls in REGISTERED} == ALGORITHMS
    assert set(ALGORITHMS) >= {"sharp", "naive", "wishful", "single-tree", "multi-tree", "full"}


def test_parameters_alone_make_no_statistic() -> None:
    with pytest.raises(TypeError, match="abstract methods bounder, releaser"):
        mean(MeanParameters)  # type: ignore[type-abstract]
    parameters = mean(ALGORITHMS["naive"])
    assert parameters.sample_grid == parameters.grid


class TestMean:
    """Each law holds for every algorithm; a new one is found, not listed."""

    @in_a_loop
    @every_mean
    def test_without_noise_the_release_is_the_exact_mean(self, cls: type[MeanParameters]) -> None:
        # given an epsilon for which all noise is zero and every clip interval is wide
        parameters = mean(cls, epsilon=Fraction(10**30), failure=Fraction(1, 10**40))
        sent = contributions(parameters, STREAM)
        estimates, _ = play(parameters.releaser(KEY, b""), sent)
        # then each release is the mean of the samples that it rests on
        assert sent
        for at, estimate in enumerate(estimates, start=1):
            held = sent[:at]
            samples = sum(c.samples for c in held)
            if estimate is None and cls in CHOOSING and at < len(sent):  # few users have not chosen yet
                continue
            assert estimate is not None
            assert estimate.samples == samples  # all levels that were met are active
            assert estimate.value == parameters.sample_grid.mean_value(sum(c.total for c in held), samples)
            assert estimate.noise_sd == 0

    @every_mean
    @every_epsilon
    def test_a_release_is_a_function_of_key_and_group(self, cls: type[MeanParameters], epsilon: Fraction) -> None:
        parameters, samples = case(cls, epsilon)
        sent = contributions(parameters, samples)
        one = play(parameters.releaser(KEY, b"x"), sent)
        assert repr(play(parameters.releaser(KEY, b"x"), sent)) == repr(one)
        for other in (parameters.releaser(bytes(32), b"x"), parameters.releaser(KEY, b"y")):
            assert play(other, sent)[0] != one[0] or not knows(one[0][-1])

    @in_a_loop
    @every_mean
    @every_epsilon
    def test_an_estimate_changes_nothing(self, cls: type[MeanParameters], epsilon: Fraction) -> None:
        parameters, samples = case(cls, epsilon)
        sent = contributions(parameters, samples)
        quiet = parameters.releaser(KEY, b"")
        for contribution in sent:
            quiet.add(contribution)
            quiet.close()
        assert quiet.estimate() == play(parameters.releaser(KEY, b""), sent)[0][-1] == quiet.estimate()

    @in_a_loop
    @every_mean
    @every_epsilon
    def test_merged_partials_give_the_same_releases(self, cls: type[MeanParameters], epsilon: Fraction) -> None:
        parameters, samples = case(cls, epsilon)
        one, other = parameters.releaser(KEY, b""), parameters.releaser(KEY, b"")
        alone, together = by_tick(contributions(parameters, samples)), by_tick(merged(parameters, samples))
        # given ticks in which several units contribute: the same releases, activations, and state, after each
        assert sum(map(len, together)) < sum(map(len, alone)) or not parameters.bounder().merges
        for tick, partials in zip(alone, together, strict=True):
            assert play_ticks(one, [tick]) == play_ticks(other, [partials])
            assert one.head() == other.head()
        assert one.kept == other.kept

    @in_a_loop
    @every_mean
    @every_epsilon
    def test_the_order_within_a_tick_changes_no_release(self, cls: type[MeanParameters], epsilon: Fraction) -> None:
        """Levels of `full` activate at a contribution, in canonical order, so that its ticks are given in that."""
        parameters, samples = case(cls, epsilon)
        one, other = parameters.releaser(KEY, b""), parameters.releaser(KEY, b"")
        for at, tick in enumerate(by_tick(contributions(parameters, samples))):
            shuffled = tick if issubclass(cls, Full) else sorted(tick, key=lambda c: (c.number * 7 + at) % 5)
            assert play_ticks(one, [tick]) == play_ticks(other, [shuffled])
            assert one.head() == other.head()

    @covered(strength=1, keep=["1-epsilon0-full"])
    @every_mean
    @every_epsilon
    @pytest.mark.parametrize("flush", [1, 7])
    def test_the_state_survives_a_restart_anywhere(
        self, cls: type[MeanParameters], epsilon: Fraction, flush: int
    ) -> None:
        parameters, samples = case(cls, epsilon)
        sent = contributions(parameters, samples)
        expected, activated = play(parameters.releaser(KEY, b""), sent)
        # given a releaser whose changes go to a log now and then, and a fresh one that takes over each time
        log: dict[tuple[int, str], Contribution] = {}
        releaser = parameters.releaser(KEY, b"")
        found, estimates = [], []
        for at, contribution in enumerate(sent):
            estimate, activations = play(releaser, [contribution])
            found += [(at, activation) for _, activation in activations]
            estimates += estimate
            if at % flush == 0:
                written, dropped = releaser.take_changes()
                for key in dropped:
                    del log[key]
                log.update({(c.level, c.pseudonym): c for c in written})
                assert log == releaser.kept
                assert json_able(releaser.head())
                head = json.loads(json.dumps(releaser.head()))
                releaser = parameters.releaser(KEY, b"")
                releaser.restore(head, log.values())
                assert releaser.take_changes() == ([], [])
        # then nobody can tell
        assert estimates == expected
        assert found == activated

    @in_a_loop
    @every_mean
    @every_epsilon
    def test_numbers_of_the_head_may_come_back_as_strings(self, cls: type[MeanParameters], epsilon: Fraction) -> None:
        parameters, samples = case(cls, epsilon)
        one, other = parameters.releaser(KEY, b""), parameters.releaser(KEY, b"")
        play(one, contributions(parameters, samples))
        other.restore(as_strings(one.head()), one.kept.values())
        assert (other.head(), other.estimate()) == (one.head(), one.estimate())

    @pytest.mark.parametrize("cls", PLAIN, ids=[cls.name for cls in PLAIN])
    @every_epsilon
    def test_noise_sd_is_that_of_the_draws_in_the_release(self, cls: type[MeanParameters], epsilon: Fraction) -> None:
        parameters = mean(cls, epsilon=epsilon)
        releaser = parameters.releaser(KEY, b"")
        play(releaser, contributions(parameters, STREAM))
        estimate, drawn = releaser.estimate(), noise_in_release(parameters, releaser)
        if estimate is None or not estimate.samples:
            assert not drawn
            return
        # they make up what is stated, but for the rounding of the sum
        rounding = parameters.grid.width_value(1) / estimate.samples / 2
        assert estimate.noise_sd == pytest.approx(drawn, rel=1e-5, abs=rounding)
        assert estimate.value is not None
        assert estimate.low < estimate.value < estimate.high

    @every_mean
    def test_the_cap_holds(self, cls: type[MeanParameters]) -> None:
        bounder = mean(cls, m=5).bounder()
        assert bounder.max_contributions == 5
        account = 0
        for number in range(1, 6):
            account, _ = bounder.add(account, STEPS)
            assert account & (2**32 - 1) == number
        with pytest.raises(ValueError, match="beyond max_contributions"):
            bounder.add(account, STEPS)

    @in_a_loop
    @every_mean
    @given(values=st.lists(st.integers(0, STEPS), min_size=1, max_size=70))
    def test_contributions_carry_the_exact_sums(self, cls: type[MeanParameters], values: list[int]) -> None:
        parameters = mean(cls, m=70)
        sent = contributions(parameters, [Sample(at, "u", value) for at, value in enumerate(values)])
        included = sum(c.samples for c in sent)
        assert [c.number for c in sent] == list(range(1, len(sent) + 1))
        assert 2 * included > len(values) or (issubclass(cls, Wishful) and not included)
        assert sum(own(parameters, c) for c in sent) == sum(values[:included]) + included * lowest(parameters)

    @in_a_loop
    @every_mean
    def test_no_release_before_the_first_contribution(self, cls: type[MeanParameters]) -> None:
        releaser = mean(cls).releaser(KEY, b"")
        assert releaser.estimate() is None
        assert releaser.kept == {}

    @in_a_loop
    @every_mean
    def test_no_two_draws_share_a_name(self, cls: type[MeanParameters], monkeypatch: pytest.MonkeyPatch) -> None:
        """Two draws of the same bits would make a difference of releases exact."""
        named: dict[bytes, set[tuple[bytes | str | int, ...]]] = {}
        read: dict[tuple[bytes, int], set[int]] = {}

        def naming(key: bytes, *parts: bytes | str | int) -> bytes:
            subkey = derive(key, *parts)
            named.setdefault(subkey, set()).add((key, *parts))
            return subkey

        class Reading(keyed.Bits):
            def block(self, start: int, count: int) -> bytes:
                read.setdefault((self._subkey, start), set()).add(id(self))
                return super().block(start, count)

        for module in modules():
            for name, instead in (("derive", naming), ("Bits", Reading)):
                if hasattr(module, name):
                    monkeypatch.setattr(module, name, instead)
        alive: list[Releaser] = []  # so that ids stay distinct
        # given several metrics, groups and coordinates, all levels active, trees past their capacity
        for key, coordinate in ((KEY, 0), (KEY, 1), (bytes(32), 0)):
            for group in (b"", b"x", b"x\0"):
                parameters, samples = case(cls, Fraction(700) if cls is SharpOnBlocks else Fraction(10**6))
                alive.append(parameters.releaser(key, group, coordinate))
                sent = contributions(parameters, samples)
                for contribution in sent:
                    alive[-1].add(contribution)
                    alive[-1].close()
                alive[-1].estimate()
        assert all(len(names) == 1 for names in named.values())
        assert {subkey for subkey, _ in read} <= set(named)
        assert read


def as_strings(state: Any) -> Any:
    """The state with every int as text."""
    return [as_strings(item) for item in state] if isinstance(state, list) else str(state)


@in_a_loop
@every_mean
def test_parameters_are_checked(cls: type[MeanParameters]) -> None:
    for wrong in ({"epsilon": Fraction(0)}, {"m": 0}, {"users": 0}, {"groups": 0}, {"failure": Fraction(1)}):
        with pytest.raises(ValueError, match="must"):
            mean(cls, **wrong)
    with pytest.raises(ValueError, match="max_contributions must be"):
        mean(cls, m=1 << 32)
    with pytest.raises(ValueError, match="epsilon must be at least"):
        mean(cls, epsilon=Fraction(1, 10**61))


def test_the_budget_adds_up() -> None:
    for m in (1, 2, 3, 5, 16, 1000):
        parameters = mean(ALGORITHMS["full"], epsilon=Fraction(1, 3), m=m, groups=7)
        top = max(1, blocks.top_level(m))
        trees = sum((level.tree.epsilon for level in parameters.levels), Fraction(0))  # type: ignore[attr-defined]
        priors = parameters.prior_epsilon * (top - 1)  # type: ignore[attr-defined]
        assert 7 * (trees + priors) <= parameters.epsilon
        assert trees == parameters.group_epsilon / 2
    assert mean(ALGORITHMS["naive"], groups=7).tree.epsilon * 7 == 1  # type: ignore[attr-defined]
