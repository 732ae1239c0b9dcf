"""The second reading: what it takes that the first refuses, and that both take all else alike."""

from datetime import UTC, datetime

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.cells import cell_reader
from shoal.models.config.cell import CellSection
from shoal.models.config.reading import FIRST, NEWEST
from shoal.models.events import MISSING, Refused, parse, read_group, read_time, read_user, read_value
from shoal.models.times import EPOCH, time_of_field_text, time_of_text
from tests.support.cover import in_a_loop

NEW_YEAR = 1_704_067_200_000_000  # of 2024, in microseconds
WHERE = CellSection(h3=8, lat="lat", lon="lon")


def time_of(text: str, reading: int = NEWEST) -> int | str:
    raw = b'{"t": %s}' % text.encode()
    try:
        return read_time(parse(raw, reading)["t"], raw, "t", reading)
    except Refused as refused:
        return refused.reason


def user_of(text: str, reading: int = NEWEST) -> bytes | str:
    raw = b'{"u": %s}' % text.encode()
    try:
        return read_user(parse(raw, reading)["u"], raw, "u", reading)
    except Refused as refused:
        return refused.reason


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_a_fault_of_its_field_alone(constant):
    raw = b'{"u": 12.0, "t": 1e9, "g": 3, "x": %s, "y": 5}' % constant.encode()
    event = parse(raw, NEWEST)
    assert (read_user(event["u"], raw, "u", NEWEST), read_group(event["g"], raw, "g", NEWEST)) == (b"12", "3")
    assert (read_time(event["t"], raw, "t", NEWEST), read_value(event["y"])) == (10**15, 5)
    with pytest.raises(Refused, match="bad-value"):
        read_value(event["x"])
    with pytest.raises(Refused, match="not-json"):
        parse(raw, FIRST)


@in_a_loop
@pytest.mark.parametrize("text", ["nan", "+Infinity", "01", "1.", "0x1"])
def test_nothing_else_becomes_json(text):
    for reading in (FIRST, NEWEST):
        with pytest.raises(Refused, match="not-json"):
            parse(b'{"x": %s}' % text.encode(), reading)


def test_a_byte_order_mark_is_no_part_of_a_record():
    raw = b'\xef\xbb\xbf{"u": 1.0, "x": 1e400}'
    assert parse(raw, NEWEST) == {"u": 1.0, "x": float("inf")}
    assert read_user(1.0, raw, "u", NEWEST) == b"1"
    with pytest.raises(Refused, match="not-json"):
        parse(raw, FIRST)
    with pytest.raises(Refused, match="not-json"):
        parse(b"\xef\xbb\xbf" + raw, NEWEST)


@in_a_loop
@pytest.mark.parametrize("text", ["12.0", "12", '"12"', "1.2e1", "120e-1", "12.000000000000000000000000000000"])
def test_one_number_is_one_user_however_it_is_written(text):
    assert user_of(text) == b"12"


@in_a_loop
@pytest.mark.parametrize("text", ["12.5", "1e400", "1e256", "1e-400", "1e999999999", "NaN", "null", "true"])
def test_other_numbers_are_no_ids(text):
    assert user_of(text) == "bad-user"
    raw = b'{"g": %s}' % text.encode()
    if text != "true":
        with pytest.raises(Refused, match="bad-group"):
            read_group(parse(raw, NEWEST)["g"], raw, "g", NEWEST)


def test_floats_are_no_ids_to_the_first_reading():
    assert user_of("12.0", FIRST) == "bad-user"


def test_neighbouring_integers_stay_two_users():
    assert user_of("9007199254740993.0") != user_of("9007199254740992.0")
    assert user_of("-0.0") == user_of("0") == user_of("-0")


@in_a_loop
@pytest.mark.parametrize(
    "text",
    ["1704067200", "1704067200000", "1704067200000000", "1704067200000000000", "1.7040672e9", "1704067200000.0",
     '"1704067200"', '"1704067200000"', '"1704067200000000"', '"1704067200000000000"', '"1704067200.0"',
     '"2024-01-01"', '"2024-01-01T00:00"', '"2024-01-01 00:00:00.000000"', '"20240101T000000Z"', '"2024-W01-1"',
     '"2024-01-01T05:30:00+05:30"', '"2023-12-31T19:00:00-05:00"', '"2024-01-01_00:00"'],
)  # fmt: skip
def test_every_form_of_one_instant(text):
    assert time_of(text) == NEW_YEAR


@in_a_loop
@pytest.mark.parametrize("digits", range(1, 22))
def test_digits_alone_are_an_epoch_time_or_refused_and_never_a_date(digits):
    for text in ("2024010112000000000000"[:digits], "1704067200000000000000"[:digits], "9" * digits):
        found = time_of(f'"{text}"')
        could_be_a_date = text[:2] == "20" and digits in (12, 14)
        assert found == ("bad-time" if digits < 9 or digits > 20 or could_be_a_date else time_of(text)), text
        if found != "bad-time" and digits < 12:
            assert found == int(text) * 10**6, "seconds"
    assert time_of("20240101120000") == "bad-time"


@in_a_loop
@pytest.mark.parametrize(
    "text", ["2024-01-01500:00", "2024-01-010", "20240101000000", "202401010000.5", "", "now", "1e9", "٢٠٢٤٠١٠١٠"]
)
def test_texts_that_could_be_read_in_two_ways_are_no_times(text):
    assert time_of_field_text(text) is None


@given(st.datetimes(datetime.fromisoformat("1973-03-04"), datetime.fromisoformat("5138-11-01")))
def test_the_size_of_a_number_tells_its_unit(moment):
    exact = (moment.replace(tzinfo=UTC) - EPOCH).total_seconds() // 1
    for power in (0, 3, 6, 9):
        if power == 3 and moment.year in range(2572, 2636):
            continue  # the digits of a date
        assert time_of(str(int(exact) * 10**power)) == int(exact) * 10**6
    assert time_of_field_text(moment.isoformat()) == time_of_text(moment.isoformat())


@in_a_loop
@pytest.mark.parametrize("text", ["1e20", "1" + "0" * 21, "-1e14", "1e400"])
def test_numbers_that_no_calendar_has(text):
    assert time_of(text) == "bad-time"


def test_coordinates_may_be_text():
    hexagon = cell_reader(WHERE, None, NEWEST)
    expected = hexagon({"lat": 52.5, "lon": -0.1}, b"")
    assert hexagon({"lat": " 52.50", "lon": "-.1"}, b"") == expected
    for bad in ("north", "nan", "inf", "52,5", "", None, True):
        with pytest.raises(Refused, match="bad-lat"):
            hexagon({"lat": bad, "lon": 0}, b"")
    with pytest.raises(Refused, match="no-lat"):
        hexagon({"lat": MISSING, "lon": 0}, b"")
    with pytest.raises(Refused, match="bad-lat"):
        cell_reader(WHERE, None, FIRST)({"lat": "52.5", "lon": 0}, b"")


plain = st.one_of(
    st.integers(-(2**70), 2**70).map(str), st.text(max_size=5).map(lambda text: orjson.dumps(text).decode()),
    st.sampled_from(["1.5", "true", "null", "1e400", "[]", '"2024-01-01T00:00:00Z"', "1700000000.25", "1700000000123"]),
)  # fmt: skip


@given(plain, st.sampled_from(["u", "g"]))
def test_what_the_first_reading_takes_the_second_takes_alike(text, role):
    read = {"u": read_user, "g": read_group}[role]
    raw = f'{{"{role}": {text}}}'.encode()
    try:
        expected = read(parse(raw, FIRST)[role], raw, role, FIRST)
    except Refused:
        return
    assert read(parse(raw, NEWEST)[role], raw, role, NEWEST) == expected
