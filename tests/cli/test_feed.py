"""`shoal run` on feeds of GTFS-realtime: every form of one, what counts once, and what is refused."""

import gzip
import json
import struct
import tomllib
from contextlib import suppress
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from shoal.agents.cli.main import app
from shoal.agents.input.event_file import EventFile
from shoal.models.config.file import Config
from shoal.models.errors import InputError
from tests.support.desk import CONFIG, EVENTS, lines, seconds
from tests.support.feeds import after_lengths, report, snapshot

pytestmark = pytest.mark.slow

NAMES = {
    '"who"': '"vehicle.id"', '"x"': '"position.speed"', '"at"': '"timestamp"',
    'group = "room"': 'cell = { h3 = 7, lat = "position.latitude", lon = "position.longitude" }',
}  # fmt: skip
OF_FEEDS = reduce(lambda config, names: config.replace(*names), NAMES.items(), CONFIG)
REPORTS = [report(event["who"], seconds(event), speed=event["x"]) for event in EVENTS]
SNAPSHOTS = [snapshot(REPORTS[start : start + 20]) for start in range(0, len(REPORTS), 20)]
ONE_AFTER_THE_OTHER = b"".join(message.SerializeToString() for message in SNAPSHOTS)


@pytest.fixture
def feeds(desk):
    desk.say(OF_FEEDS)
    return desk


def events(tmp_path, content, name="in.pb"):
    """What the file is read as; an id that is no UTF-8 stays so."""
    (tmp_path / name).write_bytes(content)
    file = EventFile(str(tmp_path / name), Config.model_validate(tomllib.loads(OF_FEEDS)), "readings")
    return [json.loads((line.value or b"").decode("utf-8", "surrogateescape")) for line in file.lines()]


# ---------------------------------------------------------------- forms


FORMS = {
    "one.pb": snapshot(REPORTS).SerializeToString(),
    "one after the other.pb": ONE_AFTER_THE_OTHER,
    "each after its length.pb": after_lengths(SNAPSHOTS),
    "packed.pb.gz": gzip.compress(after_lengths(SNAPSHOTS)),
    "VehiclePositions.BIN": ONE_AFTER_THE_OTHER,
    "packed under a foreign name.csv": gzip.compress(ONE_AFTER_THE_OTHER),
    "with what is no position.pb": snapshot(REPORTS, trip_update={"trip": {}}, alert={}).SerializeToString(),
    "with repetitions.pb": ONE_AFTER_THE_OTHER[: len(ONE_AFTER_THE_OTHER) // 12] + ONE_AFTER_THE_OTHER,
}


def test_every_form_of_a_feed_makes_the_bytes_of_the_same_json(feeds):
    feeds.put("plain.jsonl", lines(REPORTS))
    expected, made = feeds.run("plain.jsonl"), {}
    assert len(expected.splitlines()) == 4
    for name, content in FORMS.items():
        feeds.forget()
        feeds.put(name, content)
        made[name] = feeds.run(name)
    assert [name for name, found in made.items() if found != expected] == []


def test_standard_input_may_be_snapshots_one_after_the_other(feeds):
    feeds.put("plain.jsonl", lines(REPORTS))
    expected = feeds.run("plain.jsonl")
    for content in (ONE_AFTER_THE_OTHER, after_lengths(SNAPSHOTS)):
        feeds.forget()
        assert feeds.call("--input", "-", "--output", "-", stdin=content).stdout_bytes == expected


float32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(number=float32)
def test_a_number_has_the_digits_that_four_bytes_have(tmp_path_factory, number):
    """A feed's number is the shortest decimal from which the same four bytes come."""
    content = snapshot([report("7", 5, speed=number)]).SerializeToString()
    (event,) = events(tmp_path_factory.getbasetemp(), content)
    assert struct.pack("f", event["position"]["speed"]) == struct.pack("f", number)
    assert event["position"]["speed"] == float(str(np.float32(number)))


def test_an_event_has_the_names_of_the_specification_and_only_what_was_given(tmp_path):
    full: dict[str, Any] = {
        "trip": {"trip_id": "t1", "route_id": "r1", "direction_id": 1, "start_time": "11:15:35"},
        "vehicle": {"id": "v1", "label": "Hauptbahnhof"},
        "position": {"latitude": 0.5, "longitude": -0.5, "bearing": 90, "speed": 0, "odometer": 7},
        "stop_id": "s1", "occupancy_percentage": 120, "timestamp": 1_700_000_000, "current_status": "STOPPED_AT",
    }  # fmt: skip
    whole, empty = events(tmp_path, snapshot([full, {}]).SerializeToString())
    del full["trip"]["start_time"], full["position"]["odometer"], full["current_status"]
    full["position"] |= {"east": 0, "north": 0}  # besides, of a speed with a bearing
    assert whole == full
    assert empty == {}


@pytest.mark.parametrize(
    ("bearing", "east", "north"), [(0, 0, 5), (90, 5, 0), (225, -3.5355339, -3.5355339), (-30, -2.5, 4.330127)]
)
def test_a_speed_with_a_bearing_has_parts(tmp_path, bearing, east, north):
    (event,) = events(tmp_path, snapshot([report("a", 100, speed=5, bearing=bearing)]).SerializeToString())
    assert (event["position"]["east"], event["position"]["north"]) == pytest.approx((east, north), abs=1e-6)


@pytest.mark.parametrize("position", [{"speed": 5}, {"bearing": 90}, {"speed": 5, "bearing": float("nan")}])
def test_what_has_no_direction_or_speed_has_no_parts(tmp_path, position):
    (event,) = events(tmp_path, snapshot([report("a", 100, **position)]).SerializeToString())
    assert not {"east", "north"} & set(event["position"])


# ---------------------------------------------------------------- what counts once


def test_a_repeated_position_counts_once_and_a_newer_one_again(tmp_path):
    first, second = report("a", 100, speed=1), report("a", 130, speed=1)
    other = report("b", 100, speed=1)
    content = after_lengths([snapshot([first, other]), snapshot([first, other]), snapshot([second, other])])
    assert [(one["vehicle"]["id"], one["timestamp"]) for one in events(tmp_path, content)] == [
        ("a", 100), ("b", 100), ("a", 130),
    ]  # fmt: skip


def test_what_counts_once_depends_on_no_value(tmp_path):
    content = after_lengths([snapshot([report("a", 100, speed=speed)]) for speed in (1, 2)])
    assert [one["position"]["speed"] for one in events(tmp_path, content)] == [1]


def test_a_position_without_a_time_has_that_of_its_snapshot(tmp_path):
    untimed = report("a", None, speed=1)
    content = b"".join(snapshot([untimed], time=time).SerializeToString() for time in (100, 100, 130))
    assert [one["timestamp"] for one in events(tmp_path, content)] == [100, 130]


def test_without_vehicle_or_any_time_nothing_is_a_repetition(tmp_path):
    for nameless in (report(None, 100, speed=1), report("a", None, speed=1)):
        assert len(events(tmp_path, snapshot([nameless, nameless]).SerializeToString())) == 2


# ---------------------------------------------------------------- what is refused


ODD = {
    "no vehicle": (report(None, 1_704_067_200, speed=1), "no-user"),
    "no time": (report("u1", None, speed=1), "no-time"),
    "no speed": (report("u1", 1_704_067_200), "no-value"),
    "no position": ({"vehicle": {"id": "u1"}, "timestamp": 1_704_067_200}, "no-lat"),
    "no number": (report("u1", 1_704_067_200, speed=float("nan")), "bad-value"),
    "a time of no calendar": (report("u1", 20_240_101_000_000, speed=1), "bad-time"),
    "a place that is none": (report("u1", 1_704_067_200, speed=1, latitude=91), "bad-lat"),
    "a place beyond the date line": (report("u1", 1_704_067_200, speed=1, longitude=-181), "bad-lon"),
}


@pytest.mark.parametrize("case", ODD, ids=str)
def test_a_position_that_cannot_be_used_is_a_dead_letter(feeds, case):
    odd, reason = ODD[case]
    feeds.put("plain.jsonl", lines(REPORTS))
    expected = feeds.run("plain.jsonl")
    feeds.forget()
    feeds.put("in.pb", snapshot([*REPORTS[:120], odd, *REPORTS[120:]]).SerializeToString())
    assert feeds.run("in.pb", "--dead-letters", "letters.jsonl") == expected
    (letter,) = (feeds.folder / "letters.jsonl").read_text().splitlines()
    assert json.loads(letter)["reason"] == reason


def test_ids_that_are_no_text_are_refused_and_make_no_two_vehicles_one(feeds):
    feeds.put("plain.jsonl", lines(REPORTS))
    expected = feeds.run("plain.jsonl")
    feeds.forget()
    strange = snapshot([report("u?", 1_704_067_200, speed=1)]).SerializeToString().replace(b"u?", b"u\xff")
    feeds.put("in.pb", strange + ONE_AFTER_THE_OTHER)
    assert feeds.run("in.pb", "--dead-letters", "letters.jsonl") == expected
    assert "not-json" in (feeds.folder / "letters.jsonl").read_text()


def test_a_file_that_ends_within_a_message_is_refused(feeds):
    for content in (ONE_AFTER_THE_OTHER[:-3], after_lengths(SNAPSHOTS)[:-3], ONE_AFTER_THE_OTHER + b"\x08"):
        feeds.put("in.pb", content)
        assert "is cut off or damaged after record 2" in feeds.refused("in.pb")
    assert feeds.charged() == 0


@pytest.mark.parametrize(
    "damage",
    [
        b"\x12\xff\xff\xff\xff\x0f",  # a length of 4 GiB
        b"\x12" + b"\xff" * 12,  # a length without an end
        b"\x12\x03abc",  # an entity that is none
        b"\x0a\x02\x18",  # a header that is none
        b"\x0b",  # a group, which feeds have not
        b"\x09\x01",  # a number of eight bytes, cut off
    ],
    ids=str,
)
def test_damage_is_refused_whatever_it_is(feeds, damage):
    feeds.put("in.pb", ONE_AFTER_THE_OTHER + damage)
    assert "is cut off or damaged after record 240" in feeds.refused("in.pb")
    assert feeds.charged() == 0


def test_fields_that_the_specification_may_get_are_passed_over(feeds):
    feeds.put("plain.jsonl", lines(REPORTS))
    expected = feeds.run("plain.jsonl")
    feeds.forget()
    feeds.put("in.pb", ONE_AFTER_THE_OTHER + b"\x20\x81\x01" + b"\x29" + bytes(8) + b"\x35" + bytes(4) + b"\x3a\x01x")
    assert feeds.run("in.pb") == expected


@pytest.mark.parametrize("content", [lines(EVENTS), b"\x7fELF\x02\x01\x00\x00", b"hello", b"\n\n\n"], ids=str)
def test_what_is_named_as_a_feed_and_is_none_is_refused(feeds, content):
    feeds.put("in.pb", content)
    assert "is no feed of GTFS-realtime, for it does not begin as one" in feeds.refused("in.pb")


@pytest.mark.parametrize("content", [b"", snapshot([], alert={}).SerializeToString()], ids=["empty", "alerts alone"])
def test_a_feed_without_positions_has_no_event(feeds, content):
    feeds.put("in.pb", content)
    assert "there is no event in it" in feeds.refused("in.pb")


@example(cut=592, junk=b"\0\0\x80")  # an id that is no UTF-8
@given(cut=st.integers(0, len(ONE_AFTER_THE_OTHER) // 12), junk=st.binary(max_size=12))
def test_no_file_ends_in_anything_but_events_or_one_line(tmp_path_factory, cut, junk):
    content = SNAPSHOTS[0].SerializeToString()[:cut] + junk
    with suppress(InputError):
        assert len(events(tmp_path_factory.getbasetemp(), content)) <= 20


def test_a_time_centuries_ahead_is_refused(feeds):
    feeds.put("in.pb", snapshot([*REPORTS, report("u1", 2**64 - 1, speed=1)]).SerializeToString())
    assert "more than 530 years lie between the times of record 1 and record 241" in feeds.refused("in.pb")


# ---------------------------------------------------------------- simulated buses


def simulated(desk, form):
    name = "trips.pb" if form == "gtfs-rt" else "trips.jsonl"
    arguments = ["--users", "60", "--hours", "2", "--radius", "3", "--format", form, "--out", str(desk.folder / name)]
    assert CliRunner().invoke(app, ["simulate", "buses", *arguments]).exit_code == 0
    return desk.folder / name


def as_a_feed_tells(event):
    """The event with a feed's names, the four bytes that it has for a number, and its speed in m/s."""
    numbers = {"latitude": event["lat"], "longitude": event["lon"], "speed": event["speed"] / 3.6}
    told = {name: float(str(np.float32(number))) for name, number in numbers.items()}
    return {"timestamp": event["at"], "vehicle": {"id": event["bus"]}, "position": told}


def test_simulated_buses_make_the_same_releases_from_a_feed_as_from_their_json(feeds):
    """Means of speeds, place by place: the JSON lines with a feed's names, digits and units, and the feed itself."""
    told = [as_a_feed_tells(json.loads(line)) for line in simulated(feeds, "json").read_text().splitlines()]
    feeds.put("told.jsonl", lines(told))
    expected = feeds.run("told.jsonl")
    assert len(expected.splitlines()) == 20
    feeds.forget()
    simulated(feeds, "gtfs-rt")
    assert feeds.run("trips.pb") == expected


def test_a_feed_of_simulated_buses_tells_what_their_json_tells(desk, tmp_path):
    """The same reports in the same order; coordinates move by less than a metre, speeds by nothing that is shown."""
    told = [json.loads(line) for line in simulated(desk, "json").read_text().splitlines()]
    fed = events(tmp_path, simulated(desk, "gtfs-rt").read_bytes())
    assert [(one["vehicle"]["id"], one["timestamp"]) for one in fed] == [(one["bus"], seconds(one)) for one in told]
    assert [round(one["position"]["speed"] * 3.6, 1) for one in fed] == [one["speed"] for one in told]
    for one, other in zip(fed, told, strict=True):
        assert abs(one["position"]["latitude"] - other["lat"]) < 1 / 111_195
        assert abs(one["position"]["longitude"] - other["lon"]) < 1 / 111_195
    assert all(one["trip"]["route_id"].startswith("line-") for one in fed)


def test_a_feed_can_be_sorted(feeds):
    feeds.put("in.pb", ONE_AFTER_THE_OTHER)
    expected = feeds.run("in.pb")
    feeds.forget()
    feeds.put("back.pb", b"".join(message.SerializeToString() for message in reversed(SNAPSHOTS)))
    assert "is not in order of time" in feeds.refused("back.pb")
    assert feeds.run("back.pb", "--sort") == expected
