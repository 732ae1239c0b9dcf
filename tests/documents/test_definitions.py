"""The worked example of Maddi's "Differential Privacy Definitions for Streaming Data", computed again.

Four clicks of three visitors: what an item's neighbours differ by, what a visitor's do, and what one costs the other.
"""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest

from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.privacy.accounting import Loss, parallel

Stream = tuple[tuple[str, str] | None, ...]  # (link, visitor) at each time step, or nothing

CLICKS: Stream = (("Link 1", "A"), ("Link 2", "B"), ("Link 2", "A"), ("Link 4", "C"))
EPSILON = Fraction(1)


def event_neighbours(stream: Stream) -> list[Stream]:
    """One item is removed; the clock goes on."""
    return [(*stream[:i], None, *stream[i + 1 :]) for i in range(len(stream))]


def user_neighbours(stream: Stream) -> list[Stream]:
    """All items of a visitor are removed."""
    visitors = {item[1] for item in stream if item}
    return [tuple(item if item and item[1] != gone else None for item in stream) for gone in sorted(visitors)]


def event_distance(one: Stream, other: Stream) -> int:
    return sum(a != b for a, b in zip(one, other, strict=True))


def clicks(stream: Stream) -> int:
    return sum(item is not None for item in stream)


def global_sensitivity(neighbours: list[Stream]) -> int:
    return max(abs(clicks(CLICKS) - clicks(other)) for other in neighbours)


def test_a_visitor_moves_the_count_by_all_its_clicks_and_an_item_by_one() -> None:
    assert global_sensitivity(event_neighbours(CLICKS)) == 1
    # visitor A clicked twice: k = 2
    most = max(Counter(item[1] for item in CLICKS if item).values())
    assert global_sensitivity(user_neighbours(CLICKS)) == most == 2


def test_neighbours_by_visitors_are_at_most_k_items_apart() -> None:
    distances = [event_distance(CLICKS, other) for other in user_neighbours(CLICKS)]
    assert max(distances) == global_sensitivity(user_neighbours(CLICKS)) == 2


def law(count: int, scale: Fraction) -> dict[int, float]:
    """Of a noised count, by the definition of discrete Laplace noise."""
    return {y: math.exp(-abs(y - count) / float(scale)) for y in range(-40, 40)}


def loss(neighbours: list[Stream], scale: Fraction) -> float:
    laws = [(law(clicks(CLICKS), scale), law(clicks(other), scale)) for other in neighbours]
    return max(abs(math.log(one[y] / other[y])) for one, other in laws for y in one)


def test_half_of_epsilon_for_an_item_is_epsilon_for_a_visitor_of_two() -> None:
    # given the noise that shoal draws for a count that protects items with the share of a visitor's loss
    share = Loss(EPSILON).share(2)
    assert share == Loss(EPSILON / 2)
    noise = DiscreteLaplace(1 / share.epsilon, bytes(32))
    # then it costs an item half of epsilon, and a visitor all of it
    assert loss(event_neighbours(CLICKS), noise.scale) == pytest.approx(0.5, rel=1e-5)
    assert loss(user_neighbours(CLICKS), noise.scale) == pytest.approx(1, rel=1e-5)
    assert share.of_group(2) == Loss(EPSILON)


def test_parts_of_time_are_disjoint_in_items_and_not_in_visitors() -> None:
    first, rest = CLICKS[:1], CLICKS[1:]
    visitors = [{item[1] for item in part if item} for part in (first, rest)]
    assert visitors[0] & visitors[1] == {"A"}
    # so what is released of both costs A the sum, and not the larger
    each = Loss(EPSILON)
    with pytest.raises(ValueError, match="parts by time are not parallel"):
        parallel([each, each], over="time")
    assert each + each == Loss(2 * EPSILON)
    # parts whose visitors are disjoint cost the larger
    assert parallel([each, Loss(EPSILON / 2)], over="users") == each


def test_a_stream_of_one_visitor_has_the_sensitivity_of_all_of_it() -> None:
    """Hence a cap on what a visitor may contribute: without one, noise would be as large as the answer."""
    for length, cap in product((4, 100), (1, 3)):
        stream: Stream = tuple(("Link 1", "A") for _ in range(length))
        capped: Stream = tuple(item if i < cap else None for i, item in enumerate(stream))
        assert [clicks(stream) - clicks(other) for other in user_neighbours(stream)] == [length]
        assert [clicks(capped) - clicks(other) for other in user_neighbours(capped)] == [cap]
