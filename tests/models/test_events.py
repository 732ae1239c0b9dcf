"""Acceptance depends on a record's form only; times never pass through a float."""

import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.config.durations import format_duration, parse_duration
from shoal.models.events import MISSING, Refused, exact_field, getter, parse, read_group, read_time, read_user
from shoal.models.times import EARLIEST, EPOCH, LATEST, iso, time_of_number, time_of_text
from tests.support.cover import in_a_loop

json_number = st.one_of(
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.tuples(st.integers(), st.integers(-5000, 5000)).map(lambda pair: f"{pair[0]}e{pair[1]}"),
    st.integers(1, 6000).map(lambda digits: "9" * digits),
)


@given(json_number)
def test_every_json_number_is_read_as_a_number(text):
    value = parse(b'{"x": %s}' % text.encode())["x"]
    assert type(value) in (int, float)
    assert value == value


@in_a_loop
@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "01", "1.", ".5", "+1", "0x1", "1e", "nan"])
def test_what_json_does_not_call_a_number_is_not_json(text):
    with pytest.raises(Refused, match="not-json"):
        parse(b'{"x": %s}' % text.encode())


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
    with pytest.raises(Refused) as caught:
        parse(raw)
    assert caught.value.reason == reason


def test_dots_reach_into_nested_objects():
    event = {"a": {"b": {"c": 1}}, "a.b": 2}
    assert getter("a.b.c")(event) == 1
    assert getter("a.x.c")(event) is MISSING
    assert getter("a.b.c.d")(event) is MISSING
    assert getter("z")(event) is MISSING
    assert getter("z.z")(event) is MISSING


def user_of(text: str) -> bytes:
    raw = b'{"u": %s}' % text.encode()
    return read_user(parse(raw).get("u", MISSING), raw, "u")


def test_a_user_is_a_text_as_it_is_or_an_integer_as_its_decimal_text():
    assert user_of('"anna"') == b"anna"
    assert user_of('"\\u00e4"') == "ä".encode()
    assert user_of("17") == user_of('"17"') == b"17"
    assert user_of("123456789012345678901234567890") == b"123456789012345678901234567890"
    assert user_of("-0") == b"0"


@in_a_loop
@pytest.mark.parametrize(
    "text", ['""', "null", "true", "1.0", "1e3", "[]", "{}", '"%s"' % ("x" * 257), '"\\ud800"', "9" * 300]
)
def test_other_users_are_refused(text):
    with pytest.raises(Refused, match="bad-user"):
        user_of(text)


def test_a_missing_user_or_group_is_called_missing():
    with pytest.raises(Refused, match="no-user"):
        read_user(MISSING, b"{}", "u")
    with pytest.raises(Refused, match="no-group"):
        read_group(MISSING, b"{}", "g")


def test_a_user_may_have_256_bytes():
    assert len(user_of('"%s"' % ("ä" * 128))) == 256


def group_of(text: str) -> str:
    raw = b'{"g": %s}' % text.encode()
    return read_group(parse(raw)["g"], raw, "g")


def test_a_group_is_a_text_an_integer_or_a_boolean():
    assert [group_of(text) for text in ('"DE"', "3", "true", "false", "12345678901234567890123")] == [
        "DE", "3", "true", "false", "12345678901234567890123",
    ]  # fmt: skip
    for text in ("1.5", "null", '""', "[]"):
        with pytest.raises(Refused, match="bad-group"):
            group_of(text)


def time_of(text: str) -> int:
    raw = b'{"t": %s}' % text.encode()
    return read_time(parse(raw)["t"], raw, "t")


@given(st.decimals(min_value=-(10**10), max_value=10**10, allow_nan=False, places=9))
def test_seconds_are_floored_to_microseconds_exactly(seconds):
    raw = b'{"t": %s}' % format(seconds, "f").encode()
    expected = Fraction(seconds) * 10**6 // 1
    assert read_time(orjson.loads(raw)["t"], raw, "t") == expected


def test_large_numbers_are_milliseconds():
    assert time_of("99999999999") is not None
    assert time_of("100000000000") == 100_000_000_000_000
    assert time_of("1700000000123.9") == 1_700_000_000_123_900
    assert time_of("1.7e12") == 1_700_000_000_000_000
    assert time_of("1e-400") == 0
    assert time_of("-1e-400") == -1


@in_a_loop
@pytest.mark.parametrize(
    "text",
    ["1e400", "-1e400", "9" * 400, "null", "true", "[]", '"soon"', '"2023-02-30"', '""', "1e18", "-1e14",
     "1e99999999999999999999", '"9999-12-31"'],
)  # fmt: skip
def test_times_that_no_calendar_has_are_refused(text):
    with pytest.raises(Refused, match="bad-time"):
        time_of(text)


def test_a_missing_time_is_called_missing():
    with pytest.raises(Refused, match="no-time"):
        read_time(MISSING, b"{}", "t")


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
