"""What k people lose in several mechanisms: against mechanisms so small that all outcomes can be enumerated."""

import itertools
import math
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.privacy.accounting import NOTHING, Concentrated, Loss
from shoal.mechanisms.privacy.together import Bound, Part, bounds
from shoal.mechanisms.privacy.zcdp import gaussian_sigma2, largest_rho
from tests.support.cover import in_a_loop
from tests.support.effort import examples

ONE, TINY = Fraction(1), Fraction(1, 10**6)
DIGITS = Context(prec=100, Emax=10**6, Emin=-(10**6))
Law = Sequence[Decimal]  # the probabilities of outcomes, in one order


def gaussian(epsilon: Fraction, delta: Fraction, touched: int = 1) -> Part:
    """A mechanism with Gaussian noise for this loss."""
    return Part(Loss(epsilon, delta), touched, rho=largest_rho(epsilon, delta))


def decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / number.denominator


def hockey_stick(p: Law, q: Law, epsilon: Fraction) -> Decimal:
    """The delta with which p is at most e**epsilon times q."""
    odds = decimal(epsilon).exp()
    return sum((max(Decimal(0), one - odds * other) for one, other in zip(p, q, strict=True)), Decimal(0))


def product(laws: Iterable[Law]) -> Law:
    """The law of mechanisms with independent noise."""
    return [math.prod(ways, start=Decimal(1)) for ways in itertools.product(*laws)]


def answers(epsilon: Fraction, count: int, turned: int) -> Law:
    """Answers at random of `count` people, of whom the first few have turned theirs."""
    kept = 1 / (1 + (-decimal(epsilon)).exp())
    return product([[1 - kept, kept] if person < turned else [kept, 1 - kept] for person in range(count)])


def chain(epsilon: Fraction, delta: Fraction, place: int) -> Law:
    """The law after `place` neighbours: an outcome of probability 0, then delta, then delta + e**epsilon delta, ..."""
    likely = sum(((i * decimal(epsilon)).exp() for i in range(place)), Decimal(0)) * decimal(delta)
    return [likely, 1 - likely]


def bells(sigma2: Fraction, shift: int, far: int) -> Law:
    """Discrete Gaussian noise on an integer; what lies beyond `far` is below all that is compared."""
    weights = [(-Decimal((y - shift) ** 2) / (2 * decimal(sigma2))).exp() for y in range(-far, far + 1)]
    total = sum((-Decimal(y**2) / (2 * decimal(sigma2))).exp() for y in range(-2 * far, 2 * far + 1))
    return [weight / total for weight in weights]


def assert_kept(some: Sequence[Bound], before: Law, after: Law) -> None:
    """No bound is exceeded, in either direction."""
    for loss, _ in some:
        for p, q in ((before, after), (after, before)):
            assert hockey_stick(p, q, loss.epsilon) <= decimal(loss.delta) + Decimal("1e-60")


# ---------------------------------------------------------------- enumerated


@pytest.mark.parametrize("people", [1, 2, 4])
def test_pure_bounds_are_reached_by_answers_at_random_in_two_metrics(people: int) -> None:
    half, third = Fraction(1, 2), Fraction(1, 3)
    (bound,) = bounds([Part(Loss(half)), Part(Loss(third))], people)
    assert bound == Bound(Loss(people * (half + third)), "pure")
    with localcontext(DIGITS):
        before, after = (product([answers(e, people, turned) for e in (half, third)]) for turned in (0, people))
        most = max(p / q for p, q in zip(before, after, strict=True))
        assert abs(most.ln() - decimal(bound.loss.epsilon)) < Decimal("1e-90")


@in_a_loop
@pytest.mark.parametrize("people", [1, 2, 3, 5])
def test_the_approximate_bound_is_reached_by_a_chain(people: int) -> None:
    loss = Loss(Fraction(1, 3), Fraction(1, 100))
    (bound,) = bounds([Part(loss)], people)
    assert bound.by == "approximate"
    with localcontext(DIGITS):
        before, after = chain(loss.epsilon, loss.delta, people), chain(loss.epsilon, loss.delta, 0)
        reached = hockey_stick(before, after, bound.loss.epsilon)
        assert reached <= decimal(bound.loss.delta) <= reached * (1 + Decimal("1e-18"))


@pytest.mark.parametrize("people", [1, 2, 3])
def test_pure_and_approximate_metrics_together_keep_their_bound(people: int) -> None:
    pure, loose = Loss(Fraction(1, 2)), Loss(Fraction(1, 3), Fraction(1, 100))
    some = bounds([Part(pure), Part(loose), Part(loose)], people)
    assert [by for _, by in some] == ["approximate"]
    with localcontext(DIGITS):
        laws = [
            product([answers(pure.epsilon, people, turned), *[chain(loose.epsilon, loose.delta, turned)] * 2])
            for turned in (0, people)
        ]
        assert_kept(some, laws[0], laws[1])


@pytest.mark.parametrize(("people", "periods"), [(1, 3), (2, 2), (3, 2)])
def test_periods_with_releases_of_their_own_lose_as_often_and_not_as_a_larger_group(people: int, periods: int) -> None:
    loss = Loss(Fraction(1, 3), Fraction(1, 100))
    (bound,) = bounds([Part(loss, touched=periods, apart=True)], people)
    assert bound.loss.delta == periods * loss.of_group(people).delta
    assert people == 1 or bound.loss.delta < loss.of_group(people * periods).delta
    # in a period there is any number of these people, and each of them is in so many periods at most
    with localcontext(DIGITS):
        for spread in itertools.product(range(people + 1), repeat=people * periods):
            if sum(spread) <= people * periods and sum(map(bool, spread)) <= periods + 1:
                after = product([chain(loss.epsilon, loss.delta, there) for there in spread if there])
                before = product([chain(loss.epsilon, loss.delta, 0) for there in spread if there])
                assert_kept((bound,), before, after)


@pytest.mark.parametrize("people", [1, 2, 4])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1)])
def test_gaussian_noise_keeps_its_bounds(people: int, epsilon: Fraction) -> None:
    part = gaussian(epsilon, Fraction(1, 1000))
    some = bounds([part], people)
    assert [by for _, by in some][-1:] == ["zcdp"] or people == 1
    with localcontext(DIGITS):
        sigma2 = gaussian_sigma2(1, part.rho or ONE)
        before, after = (bells(sigma2, shift, 150) for shift in (0, people))
        assert_kept(some, before, after)


def test_two_gaussian_metrics_and_a_pure_one_keep_their_bounds() -> None:
    part, pure, people = gaussian(Fraction(1, 2), Fraction(1, 100)), Loss(Fraction(1, 10)), 2
    some = bounds([part, Part(pure), part], people)
    with localcontext(Context(prec=70)):
        sigma2 = gaussian_sigma2(1, part.rho or ONE)
        before, after = (
            product([*[bells(sigma2, shift, 60)] * 2, answers(pure.epsilon, people, shift)]) for shift in (0, people)
        )
        for loss, _ in some:
            assert hockey_stick(before, after, loss.epsilon) <= decimal(loss.delta)


@in_a_loop
@pytest.mark.parametrize("people", [1, 3])
@pytest.mark.parametrize("alpha", [2, 5])
def test_the_rho_of_a_group_is_reached_by_gaussian_noise(people: int, alpha: int) -> None:
    rho = Fraction(1, 50)
    assert Part(Loss(ONE, TINY), rho=rho).concentrated(people) == Concentrated(people**2 * rho)
    with localcontext(DIGITS):
        sigma2 = gaussian_sigma2(1, rho)
        p, q = (bells(sigma2, shift, 150) for shift in (people, 0))
        moment = sum((a**alpha * b ** (1 - alpha) for a, b in zip(p, q, strict=True)), Decimal(0))
        assert abs(moment.ln() / (alpha - 1) - alpha * decimal(people**2 * rho)) < Decimal("1e-30")


# ---------------------------------------------------------------- laws

losses = st.fractions(Fraction(1, 1000), 2, max_denominator=1000)
deltas = st.sampled_from([Fraction(1, 1000), TINY, Fraction(1, 10**12)])
touches = st.integers(1, 5)
parts = st.one_of(
    st.builds(Part, losses.map(Loss), touches),
    st.builds(Part, st.builds(Loss, losses, deltas), touches, st.booleans()),
    st.builds(gaussian, losses, deltas, touches),
)
people_of = st.integers(1, 12)


@examples(25)
@given(st.lists(parts, max_size=4), people_of)
def test_bounds_are_those_of_groups_or_better(some: list[Part], people: int) -> None:
    plain = sum((part.of_group(people) for part in some), NOTHING)
    first, *further = bounds(some, people)
    if plain.delta < 1:
        assert first.loss.epsilon <= plain.epsilon
    assert first.loss.delta <= plain.delta
    for other in further:
        assert other.loss.delta < first.loss.delta
        assert other.loss.epsilon > first.loss.epsilon, "else the first one would be useless"
    if all(part.rho is None for part in some):
        assert first.loss == plain


@examples(10)
@given(st.lists(parts, min_size=1, max_size=3), people_of, st.integers(1, 5))
def test_more_people_lose_no_less_at_the_delta_of_one(some: list[Part], people: int, more: int) -> None:
    fewer, larger = bounds(some, people)[-1].loss, bounds(some, people + more)[-1].loss
    assert fewer.delta <= larger.delta
    assert fewer.epsilon < larger.epsilon


def test_small_pure_losses_are_counted_in_zcdp_where_that_is_less() -> None:
    # given a window with Gaussian noise, and many metrics that are pure and lose little
    window, small = gaussian(ONE, TINY), Part(Loss(Fraction(1, 100)))
    alone = bounds([window], 4)[-1].loss.epsilon
    many = bounds([window, *[small] * 100], 4)[-1].loss.epsilon
    assert many < alone + Fraction(1) < alone + 4 * 100 * Fraction(1, 100)
    # but one that loses much adds epsilon
    much = bounds([window, Part(Loss(Fraction(10)))], 4)[-1].loss.epsilon
    assert much == alone + 40


def test_a_delta_of_one_promises_nothing_and_that_of_one_unit_still_does() -> None:
    window = gaussian(Fraction(3), Fraction(1, 1000))
    (only,) = bounds([window], 4)
    assert only.loss.delta == Fraction(1, 1000)
    assert only.by == "zcdp"
    hopeless = gaussian(ONE, Fraction(3, 5))
    assert bounds([hopeless, hopeless], 1) == (Bound(Loss(2 * ONE, Fraction(6, 5)), "approximate"),)
    assert Part(Loss(ONE, Fraction(1, 2)), touched=5, apart=True).of_group(1) == Loss(5 * ONE, ONE)


def test_one_unit_loses_what_is_declared() -> None:
    (bound,) = bounds([gaussian(ONE, TINY)], 1)
    assert bound.loss.delta == TINY
    assert ONE - Fraction(1, 10**9) < bound.loss.epsilon <= ONE
    assert bounds([], 3) == (Bound(NOTHING, "pure"),)


@pytest.mark.parametrize("count", [0, -1])
def test_no_people_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match="count must be greater than 0"):
        bounds([], count)
    with pytest.raises(ValueError, match="touched must be greater than 0"):
        Part(NOTHING, touched=count)
