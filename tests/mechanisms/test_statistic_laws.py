"""The laws of the interface, for every mean algorithm that is found in the package."""

import json
from fractions import Fraction
from math import fsum, sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms import blocks, keyed, laplace
from shoal.mechanisms.interval import six_digits
from shoal.mechanisms.keyed import derive
from shoal.mechanisms.statistic import ALGORITHMS, Contribution, MeanParameters, Releaser
from shoal.mechanisms.wishful import Wishful
from tests.mechanisms.mechanism_cases import (
    KEY,
    Draws,
    Sample,
    contributions,
    has,
    json_able,
    lowest,
    mean,
    means,
    merged,
    modules,
    play,
    subgaussian,
)

STEPS = 1 << 20
ALL = sorted(means(), key=lambda cls: cls.name)
KINDS = ALL + [subgaussian(cls) for cls in ALL if has(cls, "sigma")]
every_mean = pytest.mark.parametrize("cls", KINDS, ids=[cls.name for cls in KINDS])
every_epsilon = pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(50), Fraction(10**6)])


def stream(units: int = 12, each: int = 16) -> list[Sample]:
    """Units with unequal numbers of samples, interleaved; three samples share a tick."""
    samples, at = [], 0
    for j in range(each):
        for i in range(units):
            if i % 3 == 0 or j < 2 + i:
                samples.append(Sample(at // 3, f"{i:032x}", (i * 7919 + j * 104729) * 5 % STEPS))
                at += 1
    return samples


STREAM = stream()


def test_every_algorithm_is_registered_by_its_name() -> None:
    assert {cls.name: cls for cls in ALL} == ALGORITHMS
    assert set(ALGORITHMS) >= {"naive", "wishful", "single-tree", "multi-tree", "full"}


def test_parameters_alone_make_no_statistic() -> None:
    parameters = mean(MeanParameters)
    assert parameters.sample_grid == parameters.grid
    with pytest.raises(NotImplementedError):
        parameters.bounder()
    with pytest.raises(NotImplementedError):
        parameters.releaser(KEY, b"")


class TestMean:
    """Each law holds for every algorithm; a new one is found, not listed."""

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
            assert estimate is not None
            assert estimate.samples == samples  # all levels that were met are active
            assert estimate.value == parameters.sample_grid.mean_value(sum(c.total for c in held), samples)
            assert estimate.noise_sd == 0

    @every_mean
    @every_epsilon
    def test_a_release_is_a_function_of_key_and_group(self, cls: type[MeanParameters], epsilon: Fraction) -> None:
        parameters = mean(cls, epsilon=epsilon)
        sent = contributions(parameters, STREAM)
        one = play(parameters.releaser(KEY, b"x"), sent)
        assert repr(play(parameters.releaser(KEY, b"x"), sent)) == repr(one)
        for other in (parameters.releaser(bytes(32), b"x"), parameters.releaser(KEY, b"y")):
            assert play(other, sent)[0] != one[0] or one[0][-1] is None

    @every_mean
    @every_epsilon
    def test_an_estimate_changes_nothing(self, cls: type[MeanParameters], epsilon: Fraction) -> None:
        parameters = mean(cls, epsilon=epsilon)
        sent = contributions(parameters, STREAM)
        quiet = parameters.releaser(KEY, b"")
        for contribution in sent:
            quiet.add(contribution)
        assert quiet.estimate() == play(parameters.releaser(KEY, b""), sent)[0][-1] == quiet.estimate()

    @every_mean
    @every_epsilon
    def test_merged_partials_give_the_same_releases(self, cls: type[MeanParameters], epsilon: Fraction) -> None:
        parameters = mean(cls, epsilon=epsilon)
        sent = contributions(parameters, STREAM)
        one, other = parameters.releaser(KEY, b""), parameters.releaser(KEY, b"")
        play(one, sent)
        play(other, merged(parameters, STREAM))
        assert one.estimate() == other.estimate()
        assert one.head() == other.head()

    @every_mean
    @every_epsilon
    @pytest.mark.parametrize("flush", [1, 7])
    def test_the_state_survives_a_restart_anywhere(
        self, cls: type[MeanParameters], epsilon: Fraction, flush: int
    ) -> None:
        parameters = mean(cls, epsilon=epsilon)
        sent = contributions(parameters, STREAM)
        expected, activated = play(parameters.releaser(KEY, b""), sent)
        # given a releaser whose changes go to a log now and then, and a fresh one that takes over each time
        log: dict[tuple[int, str], Contribution] = {}
        releaser = parameters.releaser(KEY, b"")
        found, estimates = [], []
        for at, contribution in enumerate(sent):
            found += [(at, activation) for activation in releaser.add(contribution)]
            estimates.append(releaser.estimate())
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

    @every_mean
    def test_numbers_of_the_head_may_come_back_as_strings(self, cls: type[MeanParameters]) -> None:
        parameters = mean(cls, epsilon=Fraction(10**6))
        one, other = parameters.releaser(KEY, b""), parameters.releaser(KEY, b"")
        play(one, contributions(parameters, STREAM))
        other.restore(as_strings(one.head()), one.kept.values())
        assert (other.head(), other.estimate()) == (one.head(), one.estimate())

    @every_mean
    @every_epsilon
    def test_noise_sd_is_that_of_the_draws_in_the_release(
        self, cls: type[MeanParameters], epsilon: Fraction, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        parameters = mean(cls, epsilon=epsilon)
        releaser = parameters.releaser(KEY, b"")
        play(releaser, contributions(parameters, STREAM))
        # given a fresh object with the same state, all of whose draws go into the one release
        fresh = parameters.releaser(KEY, b"")
        fresh.restore(releaser.head(), releaser.kept.values())
        draws = Draws(monkeypatch)
        estimate = fresh.estimate()
        if estimate is None:  # subgaussian blocks wait for the first prior
            assert not draws.seen
            return
        steps = six_digits(sqrt(fsum(laplace.variance(draws.scales[subkey]) for subkey, _ in draws.seen)))
        assert estimate.noise_sd == pytest.approx(parameters.grid.width_value(steps) / estimate.samples, rel=1e-5)
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

    @every_mean
    @given(values=st.lists(st.integers(0, STEPS), min_size=1, max_size=70))
    def test_contributions_carry_the_exact_sums(self, cls: type[MeanParameters], values: list[int]) -> None:
        parameters = mean(cls, m=70)
        sent = contributions(parameters, [Sample(at, "u", value) for at, value in enumerate(values)])
        included = sum(c.samples for c in sent)
        assert [c.number for c in sent] == list(range(1, len(sent) + 1))
        assert 2 * included > len(values) or (issubclass(cls, Wishful) and not included)
        assert sum(c.total for c in sent) == sum(values[:included]) + included * lowest(parameters)

    @every_mean
    def test_no_release_before_the_first_contribution(self, cls: type[MeanParameters]) -> None:
        releaser = mean(cls).releaser(KEY, b"")
        assert releaser.estimate() is None
        assert releaser.kept == {}

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
                parameters = mean(cls, epsilon=Fraction(10**6), users=2)
                alive.append(parameters.releaser(key, group, coordinate))
                sent = contributions(parameters, STREAM)
                for contribution in sent:
                    alive[-1].add(contribution)
                alive[-1].estimate()
        assert all(len(names) == 1 for names in named.values())
        assert {subkey for subkey, _ in read} <= set(named)
        assert read


def as_strings(state: Any) -> Any:
    """The state with every int as text."""
    return [as_strings(item) for item in state] if isinstance(state, list) else str(state)


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
