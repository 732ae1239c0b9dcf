"""The bytes that stand in topics."""

import hashlib

import orjson
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.records import MAX_DEAD_LETTER_BYTES, Message, activation_bytes, dead_letter_bytes, record_key

rows = st.lists(
    st.tuples(st.integers(-(2**60), 2**60), st.text("0123456789abcdef", max_size=32), *[st.integers(0, 2**62)] * 4).map(
        list
    )
)


@given(st.dictionaries(st.text(), rows), st.none() | st.dictionaries(st.text(), st.none() | st.integers(-5, 5)))
def test_a_message_survives_the_topic(contributions, watermarks):
    message = Message("t", 1, 2, 3, 4, watermarks, True, contributions)
    assert Message.decode(message.encode()) == message


def test_a_record_key_has_a_bar_with_and_without_a_group():
    assert (record_key("basket", None), record_key("basket", "GB")) == ("basket|", "basket|GB")


def test_a_dead_letter_says_why_and_where():
    letter = orjson.loads(dead_letter_bytes("bad-value", "basket", "purchases", 3, 99, b'{"a": "\xff"}'))
    assert letter == {
        "reason": "bad-value", "metric": "basket", "topic": "purchases", "partition": 3, "offset": 99,
        "record": '{"a": "\ufffd"}',
    }  # fmt: skip
    assert orjson.loads(dead_letter_bytes("not-json", "basket", "purchases", 0, 0, None))["record"] is None


def test_a_long_dead_letter_is_cut_and_identified():
    raw = b"\x00" * (MAX_DEAD_LETTER_BYTES + 1)
    encoded = dead_letter_bytes("not-json", "basket", "purchases", 0, 0, raw)
    letter = orjson.loads(encoded)
    assert len(letter["record"]) == MAX_DEAD_LETTER_BYTES
    assert (letter["length"], letter["sha256"]) == (len(raw), hashlib.sha256(raw).hexdigest())
    assert len(encoded) < 900_000, "the letter must fit a Kafka record whatever its bytes"


def test_an_activation_says_what_was_spent():
    found = orjson.loads(activation_bytes("m", 2, "g", 3, 0, 0.5, 0.25, 100))
    assert found == {
        "metric": "m", "group": "g", "version": 2, "level": 3, "at": "1970-01-01T00:00:00Z", "prior": 0.5,
        "epsilon": 0.25, "samples": 100,
    }  # fmt: skip
