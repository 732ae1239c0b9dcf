"""What losses add up to: against sums in more digits, and against mechanisms small enough to be added up whole."""

import itertools
import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.counters.binary import BinaryTree
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.privacy.accounting import NOTHING, Concentrated, Loss, advanced, group_delta, parallel
from shoal.mechanisms.privacy.zcdp import _FLOOR, epsilon_at, gaussian_sigma2, largest_rho, smallest_epsilon
from tests.support.cover import in_a_loop
from tests.support.effort import examples

ONE, TINY = Fraction(1), Fraction(1, 10**6)
DIGITS = Context(prec=400, Emax=10**6, Emin=-(10**6))
CLOSE = 1 + Fraction(1, 10**18)  # twenty digits are kept

epsilons = st.fractions(Fraction(1, 10**6), 3) | st.fractions(Fraction(1, 10**30), Fraction(1, 10**20))
deltas = st.decimals("1e-15", "0.1", places=15).map(Fraction)
counts = st.integers(1, 40)
losses = st.builds(Loss, epsilons, deltas)


def exact(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / number.denominator


def logarithm(number: Fraction) -> Fraction:
    """To some 400 digits."""
    with localcontext(DIGITS):
        return Fraction(exact(number).ln())


# ---------------------------------------------------------------- groups: k events of one user, or k units


@given(losses)
def test_a_group_of_one_loses_what_one_does(loss: Loss) -> None:
    assert loss.of_group(1) == loss == loss.share(1)


@given(epsilons, deltas, counts)
def test_the_delta_of_a_group_is_the_sum_and_a_little_more(epsilon: Fraction, delta: Fraction, count: int) -> None:
    with localcontext(DIGITS):
        summed = delta * Fraction(sum((exact(i * epsilon).exp() for i in range(count)), Decimal(0)))
        easier = count * delta * Fraction(exact((count - 1) * epsilon).exp())
    group = Loss(epsilon, delta).of_group(count)
    assert group.epsilon == count * epsilon
    assert min(ONE, summed) <= group.delta <= min(ONE, summed * CLOSE)
    assert group.delta <= easier * CLOSE


@given(losses, losses, counts, counts)
def test_more_loss_and_larger_groups_never_lose_less(loss: Loss, other: Loss, count: int, more: int) -> None:
    larger = (loss + other).of_group(count + more)
    smaller = loss.of_group(count)
    assert smaller.epsilon < larger.epsilon
    assert smaller.delta <= larger.delta


@given(losses, counts)
def test_a_share_is_as_much_as_so_many_events_may_lose(loss: Loss, count: int) -> None:
    together = loss.share(count).of_group(count)
    assert together.epsilon == loss.epsilon
    assert loss.delta <= together.delta * CLOSE <= loss.delta * CLOSE


@pytest.mark.parametrize(("epsilon", "delta", "share"), [(1, 0, 0), (2000, TINY, 0), (999, Fraction(1, 10), None)])
def test_a_share_of_nothing_is_nothing_and_of_the_hopeless_too(
    epsilon: int, delta: Fraction, share: int | None
) -> None:
    part = Loss(Fraction(epsilon), Fraction(delta)).share(10)
    assert part.epsilon == Fraction(epsilon, 10)
    assert part.delta == share if share is not None else 0 < part.delta < Fraction(1, 10**380)


def test_a_delta_beyond_all_numbers_is_one() -> None:
    assert group_delta(1001, ONE, TINY) == 1


@in_a_loop
@pytest.mark.parametrize("odds", [2, Fraction(11, 10)])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_epsilon_of_a_group_is_reached_by_answers_at_random(odds: Fraction, count: int) -> None:
    """Each of k answers of one user is turned with probability 1 / (1 + odds); e**epsilon is `odds`."""
    kept = Fraction(odds, 1 + odds)
    law = {
        truth: {
            told: math.prod(kept if one == other else 1 - kept for one, other in zip(truth, told, strict=True))
            for told in itertools.product((0, 1), repeat=count)
        }
        for truth in itertools.product((0, 1), repeat=count)
    }
    most = max(law[a][told] / law[b][told] for a in law for b in law for told in law)
    group = Loss(logarithm(Fraction(odds))).of_group(count)
    assert group.epsilon == count * logarithm(Fraction(odds))
    assert most == odds**count


def test_the_epsilon_of_a_group_is_reached_by_geometric_noise() -> None:
    """A sum that k events move by k: P(y) is proportional to odds**-abs(y - sum)."""
    odds, count = Fraction(3, 2), 4
    ratios = [odds ** (abs(y) - abs(y - count)) for y in range(-10, 15)]
    assert max(ratios) == odds**count
    assert max(ratios[1:]) == max(ratios), "no tail is needed"


def hockey_stick(p: Sequence[Fraction], q: Sequence[Fraction], odds: Fraction) -> Fraction:
    """The delta with which p is at most `odds` times q."""
    return sum((max(Fraction(0), a - odds * b) for a, b in zip(p, q, strict=True)), Fraction(0))


@st.composite
def chains(draw: st.DrawFn) -> list[list[Fraction]]:
    """The laws of some outcomes over streams of which each is a neighbour of the next."""
    size = draw(st.integers(2, 4))
    weights = draw(st.lists(st.lists(st.integers(1, 30), min_size=size, max_size=size), min_size=2, max_size=5))
    return [[Fraction(one, sum(law)) for one in law] for law in weights]


@examples(30)
@given(chains(), st.fractions(Fraction(101, 100), 2, max_denominator=100))
def test_no_chain_of_neighbours_loses_more_than_its_group(laws: list[list[Fraction]], odds: Fraction) -> None:
    steps = len(laws) - 1
    delta = max(hockey_stick(p, q, odds) for p, q in itertools.pairwise(laws))
    assert hockey_stick(laws[0], laws[-1], odds**steps) <= group_delta(steps, logarithm(odds), delta)


def test_a_chain_reaches_the_delta_of_its_group() -> None:
    """An outcome of probability 0, then delta, then delta + e**epsilon delta, ..."""
    odds, delta, steps = Fraction(3, 2), Fraction(1, 100), 5
    likely = [delta * sum(odds**i for i in range(steps - place)) for place in range(steps + 1)]
    laws = [[one, 1 - one] for one in likely]
    for p, q in itertools.pairwise(laws):
        assert hockey_stick(p, q, odds) == delta
        assert hockey_stick(q, p, odds) <= delta
    reached = hockey_stick(laws[0], laws[-1], odds**steps)
    assert reached * (1 - Fraction(1, 10**50)) <= group_delta(steps, logarithm(odds), delta) <= reached * CLOSE


# ---------------------------------------------------------------- composition


@given(st.lists(losses, max_size=6))
def test_losses_add_up_exactly_in_any_order(parts: list[Loss]) -> None:
    total = sum(parts, NOTHING)
    assert total == sum(reversed(parts), NOTHING)
    assert (total.epsilon, total.delta) == (sum(one.epsilon for one in parts), sum(one.delta for one in parts))


@examples(25)
@given(st.lists(losses, min_size=1, max_size=8), deltas)
def test_advanced_composition_is_its_formula_and_a_little_more(parts: list[Loss], delta: Fraction) -> None:
    with localcontext(DIGITS):
        mean = sum(exact(one.epsilon) * min(Decimal(1), exact(one.epsilon).exp() - 1) for one in parts)
        squares = sum(exact(one.epsilon) ** 2 for one in parts)
        formula = Fraction(mean + (2 * squares * -exact(delta).ln()).sqrt())
    found = advanced(parts, delta)
    assert formula <= found.epsilon <= formula * CLOSE
    assert found.delta == delta + sum(one.delta for one in parts)


def test_advanced_composition_pays_for_many_small_losses_and_not_for_few_large_ones() -> None:
    many, few = [Loss(Fraction(1, 100), Fraction(1, 10**12))] * 10_000, [Loss(ONE)] * 3
    assert advanced(many, TINY).epsilon < 7 < sum(many, NOTHING).epsilon == 100
    assert advanced(few, TINY).epsilon > sum(few, NOTHING).epsilon
    assert advanced([], TINY) == Loss(Fraction(0), TINY)


@in_a_loop
@pytest.mark.parametrize(("epsilon", "count"), [(0.02, 400), (0.3, 40), (1.5, 6)])
@pytest.mark.parametrize("delta", [Fraction(1, 100), TINY])
def test_answers_at_random_lose_no_more_than_advanced_composition_says(
    epsilon: float, count: int, delta: Fraction
) -> None:
    # given the exact law of how many of so many answers are true
    kept = 1 / (1 + math.exp(-epsilon))
    laws = [math.comb(count, true) * kept**true * (1 - kept) ** (count - true) for true in range(count + 1)]
    # then beyond the epsilon that was computed lies no more than delta of it
    most = advanced([Loss(Fraction(epsilon))] * count, delta).epsilon
    beyond = [max(0.0, 1 - math.exp(float(most) - (2 * true - count) * epsilon)) for true in range(count + 1)]
    assert math.fsum(p * part for p, part in zip(laws, beyond, strict=True)) <= delta


# ---------------------------------------------------------------- parts of the data


def test_parts_by_users_cost_the_largest() -> None:
    parts = [Loss(ONE, TINY), Loss(Fraction(1, 2), 2 * TINY)]
    assert parallel(parts, over="users") == Loss(ONE, 2 * TINY)
    assert parallel([], over="users") == NOTHING


@pytest.mark.parametrize(
    ("over", "reason"),
    [
        ("time", "a user comes back, and the releases of both times tell of the same user"),
        ("groups", "a user may be in several"),
        ("values", "disjoint sets of users, chosen without their values"),
    ],
)
def test_parts_by_anything_else_are_refused(over: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"parts by {over} are not parallel: .*{reason}"):
        parallel([Loss(ONE)], over=over)


def worst(tree: BinaryTree, before: Sequence[int], after: Sequence[int]) -> Fraction:
    """The largest logarithm of a ratio of probabilities of what a Laplace counter shows: all of its nodes."""
    loss = Fraction(0)
    for node in {node for element in range(1, tree.size + 1) for _, node in tree.nodes_of(element)}:
        inside = [element for element in range(1, tree.size + 1) if (0, node) in tree.nodes_of(element)]
        one, other = (sum(stream[element - 1] for element in inside) for stream in (before, after))
        # P(y) is proportional to exp(-abs(y - sum) / scale)
        loss += max(Fraction(abs(y - other) - abs(y - one)) / tree.scale for y in range(-5, 6))
    return loss


def test_two_halves_of_time_cost_the_same_user_twice() -> None:
    # given a counter for each half of a stream, with its own noise, and values 0 or 1
    tree = BinaryTree(capacity=3, width=1, epsilon=ONE)
    assert DiscreteLaplace(tree.scale, bytes(32)).scale >= tree.scale, "the noise is that of the claim, or more"
    quiet = [0] * tree.size
    changes = [[int(place == element) for place in range(tree.size)] for element in range(tree.size)]
    # when a user has one value in one of the halves, then the loss is epsilon
    assert max(worst(tree, quiet, change) for change in changes) == ONE
    # and when two users have one each, it is so for each of them: parts by users are parallel
    assert parallel([Loss(ONE), Loss(ONE)], over="users").epsilon == ONE
    # but when it is one user who comes back, both counters tell of the same one: the noises are independent,
    # the ratios multiply, and nothing less than the sum is true
    both = max(worst(tree, quiet, first) + worst(tree, quiet, second) for first in changes for second in changes)
    assert both == 2 * ONE == (Loss(ONE) + Loss(ONE)).epsilon
    with pytest.raises(ValueError, match="not parallel"):
        parallel([Loss(ONE), Loss(ONE)], over="time")


# ---------------------------------------------------------------- zCDP


def test_the_simple_conversion_of_rho_and_the_better_one() -> None:
    rho = Concentrated(Fraction(1747, 100_000))
    assert float(rho.simple_loss(TINY).epsilon) == pytest.approx(1, abs=1e-4)
    assert float(rho.loss(TINY).epsilon) == pytest.approx(0.837, abs=1e-3)
    assert Concentrated(Fraction(0)).loss(TINY) == Concentrated(Fraction(0)).simple_loss(TINY) == Loss(0 * ONE, TINY)


@examples(10)
@given(st.fractions(Fraction(1, 10**12), 50), st.fractions(Fraction(1, 10**12), Fraction(99, 100)))
def test_rho_costs_no_more_than_by_the_simple_conversion(rho: Fraction, delta: Fraction) -> None:
    better, simple = Concentrated(rho).loss(delta), Concentrated(rho).simple_loss(delta)
    with localcontext(DIGITS):
        formula = Fraction(exact(rho) + 2 * (exact(rho) * -exact(delta).ln()).sqrt())
    assert 0 <= better.epsilon <= simple.epsilon * CLOSE
    assert formula <= simple.epsilon <= formula * CLOSE


@examples(10)
@given(st.fractions(Fraction(1, 10**6), 50), st.fractions(Fraction(1, 10**12), Fraction(1, 3)))
def test_epsilon_of_rho_undoes_rho_of_epsilon(epsilon: Fraction, delta: Fraction) -> None:
    back = smallest_epsilon(largest_rho(epsilon, delta), delta)
    assert abs(back - epsilon) <= epsilon / 10**9


def test_rounding_is_to_the_safe_side() -> None:
    """Against the same formula with twice the digits."""
    rhos, some = (Fraction(1, 3), Fraction(1, 700), Fraction(22, 7)), (TINY, Fraction(1, 3))
    for rho, delta, beta in itertools.product(rhos, some, map(Decimal, ("0.001", "0.7", "30", "1e9"))):
        with localcontext(Context(prec=300)):
            r, d = exact(rho), exact(delta)
            formula = (1 + beta) * r - (d.ln() + (1 + beta) * (1 + beta).ln() - beta * beta.ln()) / beta
            assert formula < epsilon_at(beta, r, _FLOOR.plus(d)) < formula + abs(formula) * Decimal("1e-130")


@given(st.fractions(Fraction(1, 1000), 5), counts)
def test_a_share_of_rho_is_noise_for_so_many_events(rho: Fraction, count: int) -> None:
    share = Concentrated(rho).share(count)
    assert share.of_group(count) == Concentrated(rho)
    assert gaussian_sigma2(1, share.rho) == gaussian_sigma2(count**2, rho), "k events move a sum by k"
    assert sum([share] * count, Concentrated(Fraction(0))).rho == rho / count


def renyi(p: Sequence[float], q: Sequence[float], alpha: float) -> float:
    return math.log(math.fsum(a**alpha * b ** (1 - alpha) for a, b in zip(p, q, strict=True))) / (alpha - 1)


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("alpha", [1.001, 1.5, 4.0, 30.0])
def test_rho_of_epsilon_bounds_what_is_worst(epsilon: float, alpha: float) -> None:
    # given answers at random, the worst of all pure mechanisms
    kept = 1 / (1 + math.exp(-epsilon))
    lost = renyi([kept, 1 - kept], [1 - kept, kept], alpha)
    rho = float(Concentrated.of_pure(Fraction(epsilon)).rho)
    assert lost <= alpha * rho * (1 + 1e-6)
    assert epsilon * alpha > 0.1 or lost == pytest.approx(alpha * rho, rel=1e-2), "and near 0 it is reached"
    # and choices between two, by scores that a unit shifts: logarithms of ratios lie within epsilon in all
    choices = [1 / (1 + math.exp(shift)) for shift in [step / 10 for step in range(-60, 61)]]
    moved = [1 / (1 + math.exp(step / 10 + epsilon)) for step in range(-60, 61)]
    lost = max(renyi([a, 1 - a], [b, 1 - b], alpha) for a, b in zip(choices, moved, strict=True))
    rho = float(Concentrated.of_exponential(Fraction(epsilon)).rho)
    assert lost <= alpha * rho * (1 + 1e-6)
    assert epsilon * alpha > 0.1 or lost == pytest.approx(alpha * rho, rel=1e-2), "and near 0 it is reached"


# ---------------------------------------------------------------- refusals


def test_what_makes_no_sense_is_refused() -> None:
    for wrong in (lambda: Loss(-ONE), lambda: Loss(ONE, -ONE), lambda: Concentrated(-ONE)):
        with pytest.raises(ValueError, match="must be 0 or more"):
            wrong()
    for part in (Loss(ONE), Concentrated(ONE)):
        for act in (part.of_group, part.share):
            with pytest.raises(ValueError, match="count must be greater than 0"):
                act(0)
    for make in (Concentrated.of_pure, Concentrated.of_exponential):
        with pytest.raises(ValueError, match="epsilon must be 0 or more"):
            make(-ONE)
    with pytest.raises(TypeError, match="epsilon must be an int or a Fraction, not float"):
        Loss(0.1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
        advanced([], ONE)
    with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
        Concentrated(ONE).simple_loss(Fraction(0))
