"""The cap on a user's samples in a cell: the exact minimum of the worst error, and the median against all caps."""

from fractions import Fraction
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.mechanisms.slot.cap import candidates, contribution_cap, median, optimal
from shoal.mechanisms.slot.means.linear import packed
from shoal.mechanisms.slot.worst_error import mean_and_variance_error
from tests.mechanisms.slot.cell_cases import COUNTS, EPSILONS, parameters

DROPPED = st.integers(0, 200)


def worst(counts: list[int], dropped: int, epsilon: Fraction, cap: int) -> Fraction:
    """E of the mean, as it is written in the paper, with U = 1."""
    kept, samples = sum(min(count, cap) for count in counts), sum(counts) + dropped
    return 1 - Fraction(kept, samples) + Fraction(cap, kept) / epsilon


@example([1, 2], 0, Fraction(3, 2))  # both caps have the error 2/3
@given(st.lists(st.integers(1, 80), min_size=1, max_size=9), DROPPED, EPSILONS)
def test_the_optimal_cap_is_the_best_of_all_there_are(counts: list[int], dropped: int, epsilon: Fraction) -> None:
    found = contribution_cap(counts, parameters(epsilon=epsilon, dropped=dropped))
    # then no cap is better, be it a count or not, and the least of the best is taken
    errors = {cap: worst(counts, dropped, epsilon, cap) for cap in range(1, max(counts) + 1)}
    assert errors[found] == min(errors.values())
    assert found == min(cap for cap in set(counts) if errors[cap] == errors[found])
    # so it is never worse than the median
    assert errors[found] <= errors[median(counts)]


@given(COUNTS, DROPPED, EPSILONS, st.fractions(Fraction(1, 100), 100))
def test_the_optimal_cap_of_mean_and_variance_is_the_best_count(
    counts: list[int], dropped: int, epsilon: Fraction, width: Fraction
) -> None:
    error = partial(mean_and_variance_error, epsilon=epsilon, width=width)
    errors = {
        cap: error(sum(min(count, cap) for count in counts), cap, sum(counts) + dropped) for cap in sorted(set(counts))
    }
    assert optimal(counts, dropped, error) == min(errors, key=lambda cap: (errors[cap], cap))


@given(COUNTS)
def test_the_optimal_cap_rises_with_epsilon_from_the_least_count_to_the_largest(counts: list[int]) -> None:
    samples, users = sum(counts), len(counts)
    low, high = Fraction(min(counts), users * samples), Fraction(samples, users * min(counts)) ** 2
    epsilons = [low, *(low + (high - low) * Fraction(k, 20) ** 3 for k in range(1, 20)), high]
    caps = [contribution_cap(counts, parameters(epsilon=epsilon)) for epsilon in epsilons]
    assert caps[0] == min(counts)
    assert caps == sorted(caps)
    assert caps[-1] == max(counts)


@given(COUNTS)
def test_candidates_are_the_counts_and_what_they_keep(counts: list[int]) -> None:
    expected = [(cap, sum(min(count, cap) for count in counts)) for cap in sorted(set(counts))]
    assert list(candidates(counts)) == expected


def test_the_median_is_the_lower_one() -> None:
    assert [median(counts) for counts in ([7], [9, 2], [3, 1, 2], [8, 1, 4, 2])] == [7, 2, 2, 2]


@given(COUNTS, st.integers(1, 1000))
def test_the_noise_at_the_median_is_at_most_twice_the_least(counts: list[int], cap: int) -> None:
    at_median, other = (packed(tuple(counts), cap) for cap in (median(counts), cap))
    noise, least = (Fraction(one.heaviest, one.weight) for one in (at_median, other))
    # a mean over L users' shares has noise for 1 / L at least; half of the users fill an array each
    assert least >= Fraction(1, len(counts))
    assert noise <= Fraction(2, len(counts)) * (1 + Fraction(1, 10**9))


@given(COUNTS, EPSILONS)
def test_a_number_is_taken_as_it_is_up_to_the_largest_count(counts: list[int], epsilon: Fraction) -> None:
    for cap in (1, 7, max(counts), max(counts) + 1, 10**9):
        assert contribution_cap(counts, parameters(cap=cap, epsilon=epsilon)) == min(cap, max(counts))


def test_a_cap_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="contribution_cap must be greater than 0"):
        contribution_cap([1, 2], parameters(cap=0))
