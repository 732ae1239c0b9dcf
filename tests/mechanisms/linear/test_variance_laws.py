"""The laws of a variance that decays or lies in a window, for every decay and algorithm."""

from fractions import Fraction
from itertools import product
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.forecast.step_prospect import noise_of
from shoal.mechanisms.grid import Grid
from shoal.mechanisms.linear.sides import joint_sensitivity
from shoal.mechanisms.linear.statistic import LinearReleaser
from shoal.mechanisms.parts.of import Variance
from shoal.mechanisms.statistic import Contribution, Estimate
from shoal.mechanisms.sums.decays import Decay, Exponential, Forward, Listed, Polynomial, Undecayed, Window
from shoal.mechanisms.sums.formula import formula_weights
from shoal.mechanisms.sums.weights import Weights
from tests.mechanisms.linear.restart_cases import check_restarts
from tests.mechanisms.linear.value_cases import of_values, variance_of
from tests.support.cover import in_a_loop
from tests.support.effort import examples

KEY = b"k" * 32
STEPS = 8
SURE = Fraction(10**12)
TABLE = Weights.of([Fraction(2, 3), Fraction(1, 2), Fraction(1, 7)])
FORMULA = formula_weights("exp(-i)", 8)
DECAYS: dict[Decay, Any] = {  # the weight of step s at step t, both counted from 0
    Undecayed(): lambda s, t: 1.0,
    Forward(Fraction(2)): lambda s, t: ((s + 1) / (t + 1)) ** 2,
    Window(3): lambda s, t: float(t - s < 3),
    Window(64): lambda s, t: float(t - s < 64),
    Exponential(Fraction(9, 10)): lambda s, t: 0.9 ** (t - s),
    Polynomial(Fraction(3, 2), 1000): lambda s, t: (t - s + 1) ** -1.5,
    Listed(TABLE): lambda s, t: TABLE.weight(t - s),
    Listed(FORMULA): lambda s, t: FORMULA.weight(t - s),
}
NOT_OF_PATENT = Undecayed | Forward
made = st.tuples(st.sampled_from(list(DECAYS)), st.sampled_from(["sharp", "patent"])).filter(
    lambda pair: pair[1] == "sharp" or not isinstance(pair[0], NOT_OF_PATENT)
)
streams = st.lists(st.lists(st.integers(0, STEPS), max_size=4), min_size=1, max_size=12)


def variance(
    decay: Decay, algorithm: str = "sharp", *, epsilon: Fraction = Fraction(1), steps: int = STEPS, **more: Any
) -> Any:
    grid = Grid(Fraction(-1), Fraction(3), steps)
    return of_values(
        statistic=Variance, decay=decay, algorithm=algorithm, grid=grid, epsilon=epsilon, max_contributions=5, **more
    )


def step(releaser: LinearReleaser, samples: list[int], steps: int = STEPS) -> Estimate:
    """A step with these samples, which come summed."""
    total = [sum(samples), sum(i * (steps - i) for i in samples)]
    assert releaser.add(Contribution(0, "", 0, 0, len(samples), total)) == ()
    assert releaser.close() == ()
    return releaser.estimate()


class TestVariance:
    """Each law holds for every decay and algorithm."""

    @examples(60)
    @given(made, streams)
    def test_without_noise_the_release_is_the_weighted_variance(self, pair: Any, stream: list[list[int]]) -> None:
        decay, algorithm = pair
        mechanism = variance(decay, algorithm, epsilon=SURE)
        releaser, weigh = mechanism.releaser(KEY, b""), DECAYS[decay]
        for t, samples in enumerate(stream):
            released = step(releaser, samples)
            weighted = [(weigh(s, t), -1 + i / 2) for s in range(t + 1) for i in stream[s]]
            n = sum(weight for weight, _ in weighted)
            # The patent's weights of polynomial and listed decays are right to a fifth, as are its counts.
            exact = not isinstance(decay, Polynomial | Listed) or algorithm == "sharp"
            assert released.samples == pytest.approx(n, rel=1e-5 if exact else 0.25)
            if not n:
                assert (released.value, released.noise_sd, released.low, released.high) == (None,) * 4
            elif exact:
                mean = sum(weight * x for weight, x in weighted) / n
                expected = sum(weight * (x - mean) ** 2 for weight, x in weighted) / n
                assert released.value == pytest.approx({"mean": mean, "variance": expected}, abs=2e-5)
                assert released.noise_sd == pytest.approx({"mean": 0, "variance": 0}, abs=1e-6)

    @pytest.mark.parametrize("steps", range(2, 33))
    def test_a_sample_moves_both_sums_by_the_joint_sensitivity_at_most_and_some_sample_does(self, steps: int) -> None:
        """By brute force over all pairs of values; what the sums are made for is a part of epsilon by that."""
        of = variance(Window(3), steps=steps)
        pairs = [of.packing.unpack(of.packing.pack([i]), 1) for i in range(steps + 1)]
        first, second = of.decayed
        losses = [
            Fraction(abs(a - c)) * first.epsilon / first.width + Fraction(abs(b - d)) * second.epsilon / second.width
            for (a, b), (c, d) in product(pairs, repeat=2)
        ]
        assert max(losses) * of.max_contributions == of.epsilon
        most = max(steps * abs(a - c) + 2 * abs(b - d) for (a, b), (c, d) in product(pairs, repeat=2))
        assert most == joint_sensitivity(steps)

    @in_a_loop
    @pytest.mark.parametrize("algorithm", ["sharp", "patent"])
    @pytest.mark.parametrize("decay", list(DECAYS)[1:], ids=repr)
    def test_both_sums_are_noised_for_all_samples_of_a_unit(self, decay: Decay, algorithm: str) -> None:
        if algorithm == "patent" and isinstance(decay, NOT_OF_PATENT):
            return
        first, second = variance(decay, algorithm).decayed
        assert (first.width, second.width) == (5 * 8, 5 * 16)
        assert (first.epsilon, second.epsilon) == (Fraction(8, 9), Fraction(4, 9))
        assert first.noise_sd(9) * 4 == pytest.approx(second.noise_sd(9), rel=0.01)  # W / 2: what plans count on

    @examples(40)
    @given(made, streams, streams)
    def test_neighbours_meet_the_same_noise(self, pair: Any, one: Any, other: Any) -> None:
        """With one key and one pattern the noisy sums of two streams differ by what their exact sums differ by."""
        counts = [min(len(a), len(b)) for a, b in zip(one, other, strict=False)]
        mechanism = variance(*pair)
        noisy: list[list[int]] = []
        exact: list[list[int]] = []
        for stream in (one, other):
            releaser = mechanism.releaser(KEY, b"g")
            sums = [sums.counts() for sums in mechanism.decayed]
            noisy.append([])
            exact.append([])
            for n, samples in zip(counts, stream, strict=False):
                step(releaser, samples[:n])
                noisy[-1] += releaser.released[1:]
                totals = [sum(samples[:n]), sum(i * (STEPS - i) for i in samples[:n])]
                exact[-1] += [summer.add(total) for summer, total in zip(sums, totals, strict=True)]
        for a, b, c, d in zip(*noisy, *exact, strict=True):
            # a recursion with rounded weights is a function of the noised steps: what it rounds is below a millionth
            assert a - b == pytest.approx(c - d, abs=mechanism.decayed[0].denominator * 1e-6)

    @examples(20)
    @given(made)
    def test_groups_keys_and_both_sums_have_noise_of_their_own(self, pair: Any) -> None:
        mechanism = variance(*pair, steps=1 << 16)

        def noise(key: bytes, group: bytes) -> list[tuple[int, ...]]:
            releaser, sums = mechanism.releaser(key, group), []
            for _ in range(6):
                step(releaser, [])
                sums.append(tuple(releaser.released[1:]))
            return list(zip(*sums, strict=True))

        seen = [noise(KEY, b"a"), noise(KEY, b"b"), noise(b"K" * 32, b"a")]
        assert len({sums for both in seen for sums in both}) == 6
        assert noise(KEY, b"a") == seen[0]
        # the second sum's is not the first one's, made larger
        first, second = seen[0]
        assert len({round(b / a, 2) for a, b in zip(first, second, strict=True) if a}) > 1

    @examples(40)
    @given(made, streams, st.data())
    def test_a_restart_at_any_step_changes_nothing(self, pair: Any, stream: Any, data: st.DataObject) -> None:
        mechanism = variance(*pair)
        check_restarts(lambda: mechanism.releaser(KEY, b"g"), stream, step, data)

    @given(st.lists(st.integers(0, 1 << 16), min_size=1))
    def test_what_was_packed_and_summed_is_unpacked(self, indices: list[int]) -> None:
        of = variance(Window(3), steps=1 << 16)
        total = sum(of.packing.pack([i]) for i in indices)
        assert of.packing.unpack(total, len(indices)) == [sum(indices), sum(i * ((1 << 16) - i) for i in indices)]
        # and so it is of as many samples as can be counted
        most = 1 << 15
        assert of.packing.unpack((1 << 32) * of.packing.pack([most]), 1 << 32) == [1 << 47, 1 << 62]

    def test_a_value_is_clipped_to_the_range(self) -> None:
        of = variance(Window(3))
        assert [of.packing.unpack(of.quantize([x]), 1) for x in (-7, -1, 1, 3, 1e400)] == [
            [0, 0], [0, 0], [4, 16], [8, 0], [8, 0],
        ]  # fmt: skip

    def test_a_clamped_release_lies_between_nothing_and_a_quarter_of_the_squared_range(self) -> None:
        values = []
        for group in range(40):
            releaser = variance(Window(3), epsilon=Fraction(1, 100), clamps=True).releaser(KEY, b"%d" % group)
            values.append(variance_of(step(releaser, [0, 8])).value)
        assert (min(values), max(values)) == (0, 4)
        of = variance(Window(3))
        free = [variance_of(step(of.releaser(KEY, b"%d" % group), [0, 8])).value for group in range(40)]
        assert min(free) < 0
        assert max(free) > 4

    @in_a_loop
    @pytest.mark.parametrize("decay", DECAYS, ids=repr)
    def test_an_epsilon_that_floats_hardly_hold_gives_numbers_all_the_same(self, decay: Decay) -> None:
        releaser = variance(decay, epsilon=Fraction(1, 10**60)).releaser(KEY, b"")
        for samples in ([8], [], [3, 4]):
            released = step(releaser, samples)
            fields = (released.value, released.noise_sd, released.low, released.high)
            numbers = [number for field in fields for number in field.values()]
            assert orjson.loads(orjson.dumps(numbers)) == pytest.approx(numbers)
            assert None not in numbers

    def test_what_cannot_be_is_refused(self) -> None:
        with pytest.raises(ValueError, match="epsilon must be at least 1/10+: below it the noise"):
            variance(Window(2), epsilon=Fraction(1, 10**61))
        with pytest.raises(ValueError, match="delta must be 0: the bound that both sums share holds for pure noise"):
            variance(Window(1024), delta=Fraction(1, 1000))
        with pytest.raises(ValueError, match="too far apart, too large or too close"):
            of_values(
                statistic=Variance, decay=Window(2), grid=Grid(Fraction(0), Fraction(10) ** 200, 8), epsilon=Fraction(1)
            )

    def test_a_plan_knows_no_noise_without_samples_and_no_interval_without_quantiles(self) -> None:
        assert noise_of(variance(Window(2)), 1.0, 2.0, 0) == (None, None)
        noise_sd, within = noise_of(variance(Window(2)), 1.0, None, 5)
        assert noise_sd is not None
        assert within is None

    def test_the_digest_covers_both_sums(self) -> None:
        name, digest = variance(Window(3)).chosen()
        assert name == "per-step"
        assert digest != variance(Window(3), epsilon=Fraction(2)).chosen()[1]
