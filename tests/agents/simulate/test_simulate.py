"""Simulated trips: the same bytes for the same seed, and like buses in a city."""

from collections import Counter
from itertools import pairwise
from statistics import fmean, median, pvariance
from typing import Any

import h3
import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.simulate.city import City, find_city
from shoal.agents.simulate.events import Trips, batches
from shoal.agents.simulate.routes import STEP, Lines
from shoal.agents.simulate.truth import true_means
from shoal.models.errors import InputError
from shoal.models.times import time_of_text

MONDAY = 1_772_409_600  # 2026-03-02T00:00:00Z
HOUR = 3600
SECOND = 1_000_000


def trips(users: int = 60, first: int = 6, hours: int = 2, **more: Any) -> Trips:
    return Trips(users, MONDAY + first * HOUR, MONDAY + (first + hours) * HOUR, **more)


def written(of: Trips) -> bytes:
    return b"".join(lines for _, _, lines in batches(of))


def events(of: Trips) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in written(of).splitlines()]


@pytest.fixture(scope="module")
def morning() -> list[dict[str, Any]]:
    """400 buses in a morning."""
    return events(trips(400, 6, 6))


def seconds(event: dict[str, Any]) -> int:
    return (time_of_text(event["at"]) or 0) // SECOND


def test_the_same_seed_gives_the_same_bytes_and_another_one_others() -> None:
    assert written(trips()) == written(trips()) != written(trips(seed=1))


def test_the_first_hour_is_the_same_however_many_follow() -> None:
    longer = written(trips(hours=3))
    assert longer.startswith(written(trips(hours=1)))


def test_it_counts_what_it_writes_and_says_how_far_it_is() -> None:
    found = list(batches(Trips(10, MONDAY + 8 * HOUR + 60, MONDAY + 9 * HOUR + 60)))
    assert [done for done, _, _ in found] == [540, 1140, 1740, 2340, 2940, 3540, 3600]
    assert all(count == lines.count(b"\n") for _, count, lines in found)


def test_events_have_the_agreed_form_and_are_in_order(morning: list[dict[str, Any]]) -> None:
    assert all(list(event) == ["bus", "at", "lat", "lon", "speed"] for event in morning)
    times = [seconds(event) for event in morning]
    assert times == sorted(times)
    assert MONDAY + 6 * HOUR <= times[0] <= times[-1] < MONDAY + 12 * HOUR
    assert all(0 <= event["speed"] <= 65 for event in morning)
    assert {event["bus"] for event in morning} == {f"bus-{number:05d}" for number in range(400)}
    city = City()
    east, north = city.offset(*(np.array([event[name] for event in morning]) for name in ("lat", "lon")))
    assert np.hypot(east, north).max() < 1.25 * city.radius


def test_no_second_has_more_reports_than_others(morning: list[dict[str, Any]]) -> None:
    # also not the first and the last of the ten minutes that are made at once
    counts = Counter(seconds(event) % 600 for event in morning)
    assert max(counts.values()) < 2 * len(morning) / 600


def test_few_buses_report_very_often_and_most_of_them_seldom(morning: list[dict[str, Any]]) -> None:
    counts = sorted(Counter(event["bus"] for event in morning).values(), reverse=True)
    assert counts[0] == pytest.approx(6 * HOUR / 10, abs=2)
    assert sum(counts[:20]) > 0.25 * sum(counts)
    assert 6 * 6 <= median(counts) < 6 * 16


def test_the_centre_is_slow_the_ring_fast_and_the_rush_slower(morning: list[dict[str, Any]]) -> None:
    city = City()
    out = np.hypot(*city.offset(*(np.array([event[name] for event in morning]) for name in ("lat", "lon"))))
    speed = np.array([event["speed"] for event in morning])
    hour = np.array([(seconds(event) - MONDAY) // HOUR for event in morning])
    centre, ring = out < 0.25 * city.radius, abs(out / city.radius - 0.72) < 0.05
    assert speed[ring].mean() > speed[centre].mean() + 12
    assert speed[centre & (hour == 11)].mean() > speed[centre & (hour == 8)].mean() + 2


def test_a_bus_drives_no_faster_than_it_can(morning: list[dict[str, Any]]) -> None:
    # given the buses that report every ten seconds
    by_bus = Counter(event["bus"] for event in morning)
    often = [bus for bus, count in by_bus.items() if count > 1500]
    for bus in often:
        mine = [event for event in morning if event["bus"] == bus]
        for one, two in pairwise(mine):
            far = h3.great_circle_distance((one["lat"], one["lon"]), (two["lat"], two["lon"]), unit="m")
            # then it is no further than 65 km/h, a row of the timetable and the receiver's errors allow
            assert far < 65 / 3.6 * (seconds(two) - seconds(one) + 2 * STEP) + 60
    assert often


def test_at_night_few_buses_drive_and_on_sundays_there_is_no_rush() -> None:
    night, noon = ({event["bus"] for event in events(trips(100, first, 1))} for first in (2, 12))
    assert len(night) < 25 < 75 < len(noon)
    monday, sunday = (events(trips(100, first, 1)) for first in (8, 8 - 24))
    assert fmean(one["speed"] for one in sunday) > fmean(one["speed"] for one in monday) + 2


def test_hours_are_the_citys_own() -> None:
    tokyo = City(35.7, 139.7)
    assert tokyo.hours_ahead == 9
    assert len({event["bus"] for event in events(trips(100, 17, 1, city=tokyo))}) < 25


@pytest.mark.parametrize("lon", [179.99, -179.99])
@pytest.mark.parametrize("resolution", [7, 10])
def test_a_city_may_lie_on_the_date_line(lon: float, resolution: int) -> None:
    found = events(trips(20, 0, 1, city=City(-33.9, lon, 4.0, resolution)))
    assert {event["lon"] > 0 for event in found} == {True, False}
    assert all(170 < abs(event["lon"]) <= 180 for event in found)


def test_a_bus_drives_to_and_fro() -> None:
    starts = np.array([0, 2, 5])
    lines = Lines(np.zeros(5), np.zeros(5), np.zeros(5, dtype=np.int64), starts)
    assert len(lines) == 2
    rows = lines.rows(np.full(8, 1), np.linspace(0.0, 7 * STEP, 8).astype(np.float64))
    assert rows.tolist() == [2, 3, 4, 4, 3, 2, 2, 3]


def test_a_city_is_a_name_or_a_place() -> None:
    assert find_city("-33.9, 151.2") == (-33.9, 151.2)
    assert find_city("London") == (51.5074, -0.1278)
    for wrong in ("atlantis", "1", "1,2,3", "71,0", "0,181", "nan,0", "inf,0"):
        with pytest.raises(ValueError, match=r"is no city here|no bus drives there"):
            find_city(wrong)


def test_where_h3_finds_no_path_another_city_is_asked_for() -> None:
    pentagons = [h3.cell_to_latlng(cell) for cell in h3.get_pentagons(7)]
    lat, lon = next(place for place in pentagons if abs(place[0]) < 60)
    with pytest.raises(InputError, match="choose another --city"):
        list(batches(trips(400, 6, 1, city=City(lat, lon, 60.0, 7))))


# ---------------------------------------------------------------- the truth

PLACES = [(51.5, -0.12), (51.5001, -0.12), (51.56, -0.1), (-10.0, 100.0)]
EVENTS = st.builds(
    lambda bus, at, place, speed: {
        "bus": bus, "at": f"2026-03-02T{at // 60:02d}:{at % 60:02d}:00Z",
        "lat": place[0], "lon": place[1], "speed": speed,
    },
    st.sampled_from("abc"), st.integers(0, 239), st.sampled_from(PLACES), st.integers(0, 650).map(lambda one: one / 10),
)  # fmt: skip


@given(st.lists(EVENTS, max_size=30))
def test_the_truth_is_the_plain_mean_of_each_cell_and_slot(of: list[dict[str, Any]]) -> None:
    found = true_means(of, slot=HOUR * SECOND, resolution=8)
    assert list(found) == sorted(found)
    assert sum(truth.samples for truth in found.values()) == len(of)
    for (end, cell), truth in found.items():
        there = [
            one
            for one in of
            if end - HOUR * SECOND <= seconds(one) * SECOND < end
            and h3.latlng_to_cell(one["lat"], one["lon"], 8) == cell
        ]
        assert truth.samples == len(there)
        assert truth.users == len({one["bus"] for one in there})
        assert truth.mean == pytest.approx(fmean(one["speed"] for one in there))
        assert truth.variance == pytest.approx(pvariance([one["speed"] for one in there]), abs=1e-9)


def test_the_truth_takes_times_as_events_have_them() -> None:
    event = {"bus": 1, "at": 1_772_431_200, "lat": 51.5, "lon": -0.12, "speed": 7}
    found = true_means([event], slot=HOUR * SECOND, resolution=3)
    assert [end for end, _ in found] == [(1_772_431_200 + HOUR) * SECOND]
    with pytest.raises(ValueError, match="no time"):
        true_means([event | {"at": "soon"}], slot=1, resolution=3)
