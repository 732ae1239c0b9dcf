"""The laws of what protects presence, for every statistic and decay."""

from fractions import Fraction
from itertools import product
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.linear.decay import EVERY
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.statistic import Contribution
from shoal.mechanisms.sums.decays import AllWindows, Decay, Exponential, Forward, Undecayed, Window
from tests.mechanisms.linear.presence_cases import (
    DECAYS,
    KEY,
    NAMES,
    RANGE,
    SURE,
    contribution,
    exact,
    step,
    two_sided,
)
from tests.support.cover import in_a_loop
from tests.support.effort import examples

ENDS = [RANGE, (Fraction(0), Fraction(3)), (Fraction(-2), Fraction(0)), (Fraction(1), Fraction(2))]
cases = st.tuples(st.sampled_from(NAMES), st.sampled_from(list(DECAYS)), st.sampled_from(ENDS))
streams = st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=1, max_size=12)


def made(case: tuple[str, Decay, Any], **more: Any) -> LinearStatistic:
    return two_sided(case[0], case[1], ends=case[2], **more)


class TestTwoSided:
    """Each law holds for every statistic, decay and range."""

    @examples(120)
    @given(cases, streams)
    def test_without_noise_the_release_is_the_exact_statistic(self, case: Any, stream: list[list[int]]) -> None:
        of = made(case, epsilon=SURE)
        releaser, weigh = of.releaser(KEY, b""), DECAYS[case[1]]
        for t, samples in enumerate(stream):
            released = step(of, releaser, samples)
            n, expected = exact(of, [(weigh(s, t), i) for s in range(t + 1) for i in stream[s]])
            if "count" in released.counts:
                assert released.counts["count"] == pytest.approx(n, rel=1e-5, abs=1e-6)
            if isinstance(expected, dict) and "mean" in expected and expected["mean"] is None:
                expected = released.value if n else {"mean": None, "variance": None}
            if case[0] == "distribution":
                found = (released.value or {}).get("histogram")
                assert found == (pytest.approx(expected["histogram"], abs=1e-4) if n > 1e-3 else found)
            elif n > 1e-3 or case[0] not in ("mean", "variance"):
                assert released.value == pytest.approx(expected, rel=2e-5, abs=1e-4)

    @examples(400)
    @given(cases, streams, st.integers(1, 12))
    def test_a_key_that_begins_late_has_all_of_its_past(self, case: Any, stream: list[list[int]], begin: int) -> None:
        """Its releases are, without noise, those of a key that was there from the start."""
        of = made(case, epsilon=SURE)
        whole, late = of.releaser(KEY, b""), of.releaser(KEY, b"")
        begin = min(begin, len(stream) - 1)
        past = [contribution(of, samples, begin - s) for s, samples in enumerate(stream[:begin]) if samples]
        late.begin(begin, past)
        for t, samples in enumerate(stream):
            one = step(of, whole, samples)
            if t >= begin:
                other = step(of, late, samples)
                assert near(other.value, one.value)
                assert other.counts == pytest.approx(one.counts, rel=1e-6, abs=1e-6)
        # and which step of its sums a step is, goes by the number of steps alone
        assert late.t == min(begin, of.history) + len(stream) - begin

    @examples(120)
    @given(cases, streams, streams, st.integers(0, 11))
    def test_neighbours_meet_the_same_noise(self, case: Any, one: Any, other: Any, begin: int) -> None:
        """With one key the noisy sides of two streams differ by what their exact sides differ by, a past included."""
        noisy: list[list[int]] = []
        exactly: list[list[int]] = []
        steps = min(len(one), len(other))
        begin = min(begin, steps - 1)
        for stream in (one[:steps], other[:steps]):
            of = made(case)
            sure = made(case, epsilon=SURE)
            for parameters, numbers in ((of, noisy), (sure, exactly)):
                releaser = parameters.releaser(KEY, b"g")
                past = [contribution(of, samples, begin - s) for s, samples in enumerate(stream[:begin]) if samples]
                releaser.begin(begin, past)
                numbers.append([])
                for samples in stream[begin:]:
                    step(parameters, releaser, samples)
                    numbers[-1] += releaser.released
        room = 1e-6 * of.sums.denominator if of.sums.denominator > 1 else 0
        for a, b, c, d in zip(*noisy, *exactly, strict=True):
            assert abs((a - b) - (c - d)) <= room

    @examples(40)
    @given(cases)
    def test_keys_groups_and_sides_have_noise_of_their_own(self, case: Any) -> None:
        of = made(case, epsilon=Fraction(1, 1000))

        def noise(key: bytes, group: bytes) -> list[tuple[int, ...]]:
            releaser, found = of.releaser(key, group), []
            for _ in range(6):
                step(of, releaser, [])
                found.append(tuple(releaser.released))
            return list(zip(*found, strict=True))

        seen = [noise(KEY, b"a"), noise(KEY, b"b"), noise(b"K" * 32, b"a")]
        assert len({side for sides in seen for side in sides}) == 3 * len(of.sides.noised)
        assert all(any(side) for sides in seen for side in sides)
        assert noise(KEY, b"a") == seen[0]

    @examples(80)
    @given(cases, streams, st.integers(0, 5), st.data())
    def test_a_restart_at_any_step_changes_nothing(self, case: Any, stream: Any, begin: int, data: Any) -> None:
        of = made(case)
        whole, part = of.releaser(KEY, b"g"), of.releaser(KEY, b"g")
        kept: dict[tuple[int, str], Contribution] = {}
        for releaser in (whole, part):
            releaser.begin(begin, [contribution(of, [4, 0], age) for age in range(1, begin + 1)])
        for samples in stream:
            assert step(of, whole, samples) == step(of, part, samples)
            if data.draw(st.booleans()):
                written, dropped = part.take_changes()
                kept |= {(row.level, row.pseudonym): row for row in written}
                for name in dropped:
                    kept.pop(name, None)
                assert kept == dict(part.kept)
                head = orjson.loads(orjson.dumps(part.head()))
                part = of.releaser(KEY, b"g")
                part.restore(head, [Contribution(*orjson.loads(orjson.dumps(tuple(row)))) for row in kept.values()])

    @examples(60)
    @given(cases, streams)
    def test_how_samples_come_summed_does_not_matter(self, case: Any, stream: list[list[int]]) -> None:
        of = made(case)
        one, other = of.releaser(KEY, b""), of.releaser(KEY, b"")
        for samples in stream:
            for i in samples:
                other.add(contribution(of, [i]))
            other.add(Contribution(0, "", 1, 0, 3, 999))  # newcomers, who are no samples
            other.close()
            assert step(of, one, samples) == other.estimate()
            assert one.head() == other.head()


def near(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and other is not None:
        return all(near(one[name], other[name]) for name in one)
    if one is None or other is None:  # next to nothing is left of what decays
        return one is other
    return bool(one == pytest.approx(other, rel=1e-3, abs=1e-3))


@in_a_loop
@pytest.mark.parametrize(
    ("decay", "history"),
    [
        (Undecayed(), 0),
        (Window(1), 1),
        (Window(24), 24),
        (Exponential(Fraction(1, 2)), 20),
        (Exponential.half_life(Fraction(24)), 480),
        (Exponential(1 - Fraction(1, 10**30)), EVERY),
        (Forward(Fraction(1)), EVERY),
    ],
)
def test_a_key_is_given_as_much_of_its_past_as_weighs_anything(decay: Decay, history: int) -> None:
    assert two_sided("mean", decay).history == history


def test_what_is_older_than_that_does_not_count_and_of_a_running_sum_all_does() -> None:
    of = two_sided("count", Window(3), epsilon=SURE)
    releaser = of.releaser(KEY, b"")
    releaser.begin(9, [contribution(of, [0] * age, age) for age in range(1, 10)])
    assert (step(of, releaser, [0]).value, releaser.t) == (1 + 2 + 1, 4)
    of = two_sided("count", Undecayed(), epsilon=SURE)
    releaser = of.releaser(KEY, b"")
    releaser.begin(9, [contribution(of, [0] * age, age) for age in range(1, 10)])
    assert (step(of, releaser, []).value, releaser.t) == (45, 1)


@pytest.mark.parametrize("decay", [AllWindows(), Window(3, of_updates=True)])
def test_decays_that_tell_who_contributes_when_are_refused(decay: Decay) -> None:
    with pytest.raises(ValueError, match="this decay tells when somebody contributes"):
        two_sided("mean", decay)


@in_a_loop
@pytest.mark.parametrize("decay", DECAYS, ids=repr)
@pytest.mark.parametrize("statistic", NAMES)
def test_an_epsilon_that_floats_hardly_hold_gives_numbers_all_the_same(statistic: str, decay: Decay) -> None:
    of = two_sided(statistic, decay, epsilon=Fraction(1, 10**60))
    releaser = of.releaser(KEY, b"")
    for samples in ([4], [], [3, 4]):
        released = step(of, releaser, samples)
        numbers = (released.value, released.noise_sd, released.low, released.high, dict(released.counts))
        assert orjson.loads(orjson.dumps(numbers)) == list(numbers)


def test_each_side_is_noised_for_all_samples_of_a_unit() -> None:
    assert {name: two_sided(name, Undecayed(), steps=4).sums.width for name in NAMES} == {
        "mean": 20, "sum": 20, "count": 5, "users": 5, "variance": 80, "distribution": 5,
    }  # fmt: skip


def test_the_digest_covers_what_the_noise_is_made_for() -> None:
    shapes = {tuple(two_sided("mean", Undecayed(), m=m, epsilon=e).chosen()) for m, e in product((1, 2), (1, 2))}
    assert len(shapes) == 4
