"""Acceptance depends on a record's form only; times never pass through a float."""

import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.config.durations import format_duration, parse_duration
from shoal.models.events import (
    MISSING,
    Refusal,
    exact_field,
    getter,
    group_reader,
    parse,
    read_value,
    time_reader,
    user_reader,
)
from shoal.models.times import EARLIEST, EPOCH, LATEST, iso, kept_time, time_of_field, time_of_number, time_of_text
from tests.support.cover import in_a_loop
from tests.support.parsed import parsed

NEW_YEAR = 1_704_067_200_000_000  # of 2024, in microseconds
read_user, read_group, read_time = user_reader("u"), group_reader("g"), time_reader("t")

json_number = st.one_of(
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.tuples(st.integers(), st.integers(-5000, 5000)).map(lambda pair: f"{pair[0]}e{pair[1]}"),
    st.integers(1, 6000).map(lambda digits: "9" * digits),
)


@given(json_number)
def test_every_json_number_is_read_as_a_number(text):
    value = parsed(b'{"x": %s}' % text.encode())["x"]
    assert type(value) in (int, float)
    assert value == value


@in_a_loop
@pytest.mark.parametrize("text", ["01", "1.", ".5", "+1", "0x1", "1e", "nan", "+Infinity"])
def test_what_json_does_not_call_a_number_is_not_json(text):
    assert parse(b'{"x": %s}' % text.encode()) == Refusal("not-json")


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_a_fault_of_its_field_alone(constant):
    raw = b'{"u": 12.0, "t": 1e9, "g": 3, "x": %s, "y": 5}' % constant.encode()
    event = parsed(raw)
    assert (read_user(event, raw), read_group(event, raw), read_time(event, raw)) == (b"12", "3", 10**15)
    assert (read_value(event["x"]), read_value(event["y"])) == (Refusal("bad-value"), 5)


def test_a_byte_order_mark_is_no_part_of_a_record():
    raw = b'\xef\xbb\xbf{"u": 1.0, "x": 1e400}'
    assert parse(raw) == {"u": 1.0, "x": float("inf")}
    assert read_user(parsed(raw), raw) == b"1"
    assert parse(b"\xef\xbb\xbf" + raw) == Refusal("not-json")


@in_a_loop
@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not-json"),
        (b"\xff\xfe", "not-json"),
        (b'{"a":1', "not-json"),
        (b"[1]", "not-json-object"),
        (b'"text"', "not-json-object"),
        (b"null", "not-json-object"),
        (b"[" * 100_000, "not-json"),
    ],
)
def test_other_bytes_are_refused_with_their_reason(raw, reason):
    assert parse(raw) == Refusal(reason)


def test_dots_reach_into_nested_objects():
    event = {"a": {"b": {"c": 1}}, "a.b": 2}
    assert getter("a.b.c")(event) == 1
    assert getter("a.x.c")(event) is MISSING
    assert getter("a.b.c.d")(event) is MISSING
    assert getter("z")(event) is MISSING
    assert getter("z.z")(event) is MISSING


def user_of(text: str) -> bytes | Refusal:
    raw = b'{"u": %s}' % text.encode()
    return read_user(parsed(raw), raw)


def test_a_user_is_a_text_as_it_is_or_an_integer_as_its_decimal_text():
    assert user_of('"anna"') == b"anna"
    assert user_of('"\\u00e4"') == "ä".encode()
    assert user_of("17") == user_of('"17"') == b"17"
    assert user_of("123456789012345678901234567890") == b"123456789012345678901234567890"
    assert user_of("-0") == b"0"


@in_a_loop
@pytest.mark.parametrize("text", ["12.0", "12", '"12"', "1.2e1", "120e-1", "12.000000000000000000000000000000"])
def test_one_number_is_one_user_however_it_is_written(text):
    assert user_of(text) == b"12"


def test_neighbouring_integers_stay_two_users():
    assert user_of("9007199254740993.0") != user_of("9007199254740992.0")
    assert user_of("-0.0") == user_of("0") == user_of("-0")


@in_a_loop
@pytest.mark.parametrize(
    "text",
    ['""', "null", "true", "[]", "{}", '"%s"' % ("x" * 257), '"\\ud800"', "9" * 300, "12.5", "1e400", "1e256",
     "1e-400", "1e999999999", "NaN"],
)  # fmt: skip
def test_other_users_are_refused(text):
    assert user_of(text) == Refusal("bad-user")


def test_a_missing_user_or_group_is_called_missing():
    assert (read_user({}, b"{}"), read_group({}, b"{}")) == (Refusal("no-user"), Refusal("no-group"))


def test_a_user_may_have_256_bytes():
    assert len(user_of('"%s"' % ("ä" * 128))) == 256


def group_of(text: str) -> str | Refusal:
    raw = b'{"g": %s}' % text.encode()
    return read_group(parsed(raw), raw)


def test_a_group_is_a_text_an_integer_or_a_boolean():
    assert [group_of(text) for text in ('"DE"', "3", "3.0", "true", "false", "12345678901234567890123")] == [
        "DE", "3", "3", "true", "false", "12345678901234567890123",
    ]  # fmt: skip
    for text in ("1.5", "null", '""', "[]", "1e400"):
        assert group_of(text) == Refusal("bad-group")


def time_of(text: str) -> int | Refusal:
    raw = b'{"t": %s}' % text.encode()
    return read_time(parsed(raw), raw)


@given(st.decimals(min_value=-(10**10), max_value=10**10, allow_nan=False, places=9))
def test_seconds_are_floored_to_microseconds_exactly(seconds):
    raw = b'{"t": %s}' % format(seconds, "f").encode()
    expected = Fraction(seconds) * 10**6 // 1
    assert read_time(orjson.loads(raw), raw) == expected


def test_large_numbers_are_milliseconds():
    assert time_of("99999999999") == 99_999_999_999_000_000
    assert time_of("100000000000") == 100_000_000_000_000
    assert time_of("1700000000123.9") == 1_700_000_000_123_900
    assert time_of("1.7e12") == 1_700_000_000_000_000
    assert time_of("1e-400") == 0
    assert time_of("-1e-400") == -1


@in_a_loop
@pytest.mark.parametrize(
    "text",
    ["1e400", "-1e400", "9" * 400, "null", "true", "[]", '"soon"', '"2023-02-30"', '""', "-1e14",
     "1e99999999999999999999", '"9999-12-31"', "1e20", "1" + "0" * 21],
)  # fmt: skip
def test_times_that_no_calendar_has_are_refused(text):
    assert time_of(text) == Refusal("bad-time")


def test_a_missing_time_is_called_missing():
    assert read_time({}, b"{}") == Refusal("no-time")


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
        assert found == (Refusal("bad-time") if digits < 9 or digits > 20 or could_be_a_date else time_of(text)), text
        if isinstance(found, int) and digits < 12:
            assert found == int(text) * 10**6, "seconds"
    assert time_of("20240101120000") == Refusal("bad-time")


@in_a_loop
@pytest.mark.parametrize(
    "text", ["2024-01-01500:00", "2024-01-010", "20240101000000", "202401010000.5", "", "now", "1e9", "٢٠٢٤٠١٠١٠"]
)
def test_texts_that_could_be_read_in_two_ways_are_no_times(text):
    assert time_of_field(text) is None


def test_long_texts_are_not_kept_whether_or_not_they_are_times():
    """The memory for times that were read is bounded, whatever somebody writes into a topic."""
    kept_time.cache_clear()
    long_fraction = "2024-01-01T00:00:00." + "0" * 100_000
    assert time_of_field(long_fraction) == time_of_text("2024-01-01")
    assert time_of_field("x" * 100_000) is None
    assert kept_time.cache_info().currsize == 0
    assert time_of_field("2024-01-01T00:00:00Z") == time_of_text("2024-01-01")
    assert kept_time.cache_info().currsize == 1


@given(st.datetimes(datetime.fromisoformat("1973-03-04"), datetime.fromisoformat("5138-11-01")))
def test_the_size_of_a_number_tells_its_unit(moment):
    exact = (moment.replace(tzinfo=UTC) - EPOCH).total_seconds() // 1
    for power in (0, 3, 6, 9):
        if power == 3 and moment.year in range(2572, 2636):
            continue  # the digits of a date
        assert time_of(str(int(exact) * 10**power)) == int(exact) * 10**6
    assert time_of_field(moment.isoformat()) == time_of_text(moment.isoformat())


@given(st.datetimes(datetime.fromisoformat("0001-01-02"), datetime.fromisoformat("9800-01-01")), st.integers(-14, 14))
def test_iso_texts_are_read_with_their_zone_and_written_in_utc(moment, hours):
    exact = (moment.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
    assert time_of_text(moment.isoformat()) == exact
    assert time_of_text(iso(exact)) == exact
    zoned = f"{moment.isoformat()}{'+' if hours >= 0 else '-'}{abs(hours):02d}:00"
    shifted = exact - hours * 3_600_000_000
    if EARLIEST <= shifted < LATEST:
        assert time_of_text(zoned) == shifted


def test_numbers_beyond_every_calendar_are_none():
    assert time_of_number(10**30) is None
    assert time_of_number(-(10**30)) is None


def test_exact_field_keeps_every_digit():
    assert exact_field(b'{"a": {"b": 1700000000.1234567890123}}', "a.b").as_tuple().exponent == -13
    assert exact_field(json.dumps({"n": 2**70}).encode(), "n") == 2**70


@given(st.integers(1, 10**8), st.sampled_from("smhd"))
def test_durations_survive_a_round_trip(count, unit):
    microseconds = parse_duration(f"{count}{unit}")
    assert parse_duration(format_duration(microseconds)) == microseconds


@in_a_loop
@pytest.mark.parametrize("text", ["", "5", "s", "1.5h", "-1h", "1w", "1 h", "9999999999s"])
def test_other_texts_are_no_durations(text):
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


def test_a_week_is_refused_with_its_days():
    with pytest.raises(ValueError, match="'2w' is not a duration; weeks are written in days, 14d"):
        parse_duration("2w")


def test_no_time_has_a_duration_of_its_own():
    assert format_duration(0) == "0s"
