"""The worked example of Maddi's "Differential Privacy Definitions for Streaming Data", computed again.

Four clicks of three visitors: what an item's neighbours differ by, what a visitor's do, and what one costs the other.
"""

import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import orjson
import pytest

from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from shoal.mechanisms.privacy.accounting import Loss, parallel
from shoal.models.config.file import load
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import plan_topic

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


# ---------------------------------------------------------------- the private count of clicks

EXAMPLES = Path(__file__).parents[2] / "examples"
START = datetime(2026, 1, 1, tzinfo=UTC)
LINKS = tuple(f"Link {number}" for number in range(1, 6))


def file_of(stream: Stream) -> list[bytes]:
    """The items as events, one in each hour that has any."""
    times = (START + timedelta(hours=step, minutes=30) for step in range(len(stream)))
    return [
        orjson.dumps({"link": item[0], "visitor": item[1], "at": time.isoformat()})
        for time, item in zip(times, stream, strict=True)
        if item
    ]


def released(stream: Stream, **changes: Any) -> dict[tuple[str, str], list[Any]]:
    """What shoal publishes of a stream by the example's configuration: the values of each metric and link."""
    config = load(EXAMPLES / "clicks.toml")
    metrics = tuple(metric.model_copy(update=changes) for metric in config.metric)
    plan = plan_topic(
        config.model_copy(update={"metric": metrics}), "clicks", bytes(32), source_partitions=1,
        contributions_partitions=1,
    )  # fmt: skip
    lines = (Line(number, raw) for number, raw in enumerate(file_of(stream)))
    values: dict[tuple[str, str], list[Any]] = {}
    for output in FileRun(plan).outputs(lines):
        for release in map(orjson.loads, (each.value for each in output.releases)):
            assert release["seq"] == len(values.setdefault((release["metric"], release["group"] or ""), [])) + 1
            values[release["metric"], release["group"] or ""].append(release["value"])
    return values


def counted(stream: Stream) -> dict[tuple[str, str], list[int]]:
    """The same by the text: the clicks so far, at each time step, of all links and of each."""

    def so_far(links: tuple[str, ...]) -> list[int]:
        return [sum(item is not None and item[0] in links for item in stream[: t + 1]) for t in range(len(stream))]

    return {("clicks", ""): so_far(LINKS)} | {("clicks-by-link", link): so_far((link,)) for link in LINKS}


def test_the_example_is_the_stream_of_the_text() -> None:
    events = [orjson.loads(line) for line in (EXAMPLES / "clicks.jsonl").read_bytes().splitlines()]
    assert [(event["link"], event["visitor"]) for event in events] == list(CLICKS)


def test_the_count_of_clicks_runs_and_is_exact_but_for_its_noise() -> None:
    """An epsilon so large that no noise is left shows what is counted: of the stream, and of each of its neighbours."""
    for stream in (CLICKS, *user_neighbours(CLICKS), *event_neighbours(CLICKS), (None,) * 4):
        assert released(stream, epsilon=Fraction(10**6)) == counted(stream)


@pytest.mark.parametrize("unit", ["user", "event"])
def test_neighbours_publish_the_same_but_for_what_one_visitor_or_one_item_moves(unit: str) -> None:
    # given the example's own epsilon, and one key: what is published has the same noise
    changes: dict[str, Any] = {} if unit == "user" else {"unit": "event", "max_contributions": None}
    neighbours = user_neighbours(CLICKS) if unit == "user" else event_neighbours(CLICKS)
    full = released(CLICKS, **changes)
    for other in neighbours:
        without, exact, moved = released(other, **changes), (counted(CLICKS), counted(other)), 0
        # then the same is released, of the same links at the same steps, whether anybody is there or not
        assert without.keys() == full.keys()
        for name, values in full.items():
            differences = [a - b for a, b in zip(values, without[name], strict=True)]
            assert differences == [a - b for a, b in zip(exact[0][name], exact[1][name], strict=True)]
            moved += differences[-1] if name[0] == "clicks" else 0
        # and what moves is what the text says: 1 for an item, at most k = 2 for a visitor
        assert 1 <= moved <= (2 if unit == "user" else 1)


@pytest.mark.parametrize(("unit", "most"), [("user", 2), ("event", 1)])
def test_the_noise_is_for_the_global_sensitivity(unit: str, most: int) -> None:
    """All of epsilon, for sums that a visitor moves by 2 and an item by 1: over all links together."""
    changes: dict[str, Any] = {} if unit == "user" else {"unit": "event", "max_contributions": None}
    for section in load(EXAMPLES / "clicks.toml").metric:
        sums = statistic_of(section.model_copy(update=changes).parts).decayed[0]  # type: ignore[union-attr]
        assert [sums.epsilon, sums.width] == [Fraction(1, 2), most]


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
