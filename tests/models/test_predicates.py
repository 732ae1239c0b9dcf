"""Predicates: what Python says of the same comparison is what holds, and no value decides whether an event counts."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.parts.of import Fields
from shoal.models.events import MISSING, Refusal, read_value, value_getters
from shoal.models.predicates import Predicate
from tests.support.cover import in_a_loop
from tests.support.effort import examples
from tests.support.parsed import parsed

NUMBERS = st.sampled_from(["0", "1", "-1", "0.1", "100", "99.5", "1e2", "-2.5e-3", "9007199254740993"])
COMPARED = st.builds(
    "{} {} {}".format, st.sampled_from("xy"), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), NUMBERS
)
CONDITIONS = st.recursive(
    COMPARED | st.sampled_from(["x < y", "0.1 != x", "s == 'a'", "'b' != s", "flag", "flag == true", "false != flag"]),
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["and", "or"]), inner)
        | st.builds("not ({})".format, inner)
    ),
    max_leaves=6,
)
EVENTS = st.fixed_dictionaries({
    "x": st.integers(-2, 2) | st.sampled_from([0.1, 99.5, 100.0, 1e400, 9007199254740993, 9007199254740992.0]),
    "y": st.floats(allow_nan=False),
    "s": st.sampled_from(["a", "b", ""]),
    "flag": st.booleans(),
})  # fmt: skip


def reader(text: str) -> Callable[[dict[str, Any]], Any]:
    """The function that finds a predicate's value in an event."""
    predicate = Predicate.of(text)
    return value_getters(Fields((predicate.text,), predicate))[0]


@examples(100)
@given(CONDITIONS, EVENTS)
def test_a_predicate_holds_where_python_says_so(text: str, event: dict[str, Any]) -> None:
    value = reader(text)(event)
    assert value == int(eval(text, {"true": True, "false": False}, event))


@examples(100)
@given(CONDITIONS, EVENTS, EVENTS, st.sampled_from(["x", "y", "s", "flag"]), st.sampled_from([None, "1", 1, [], True]))
def test_whether_an_event_counts_is_decided_by_its_form(
    text: str, event: dict[str, Any], other: dict[str, Any], field: str, strange: Any
) -> None:
    """Two events with other values of the same kinds are both taken, or both refused for one reason."""

    def outcome(event: dict[str, Any]) -> str:
        value = read_value(reader(text)(event))
        return value.reason if isinstance(value, Refusal) else str(type(value))

    assert outcome(event) == outcome(other)
    assert outcome(event | {field: strange}) == outcome(other | {field: strange})
    del event[field], other[field]
    assert outcome(event) == outcome(other) in ("no-value", "<class 'int'>", "bad-value")


def test_a_field_that_decides_nothing_must_be_there_all_the_same() -> None:
    value = reader("x > 1 or y > 1")
    assert value({"x": 2, "y": 0}) == 1
    assert value({"x": 2, "y": "0"}) is None
    assert value({"x": 2}) is MISSING


def test_numbers_are_read_as_those_of_events() -> None:
    tenth = reader("a.b == 0.1")
    assert [tenth(parsed(raw)) for raw in (b'{"a": {"b": 0.1}}', b'{"a": {"b": 1e-1}}', b'{"a": {"b": 0.11}}')] == [
        1,
        1,
        0,
    ]
    exact = reader("n == 9007199254740993")
    assert [exact({"n": n}) for n in (9007199254740993, 9007199254740992, 9007199254740992.0)] == [1, 0, 0]
    assert reader("n > -1e308")(parsed(b'{"n": -1e400}')) == 0


@in_a_loop
@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("a + 1 > 2", "a + 1 cannot be compared; compare fields, numbers, texts, true and false"),
        ("1 > 2", "1 > 2 does not depend on an event; compare a field"),
        ("a == 1 and 'x'", "'x' is neither true nor false; write a comparison, as in amount > 100"),
        ("a == 1 or true", "true is neither true nor false; write a comparison, as in amount > 100"),
        ("a < 'x'", "a < 'x' orders what is a text; write == or !="),
        ("a >= true", "a >= true orders what is a boolean; write == or !="),
        ("a == 1 and a == 'x'", "field a would have to be a number and a text; compare it with one of them"),
        ("a > 1e999", "1e999 is beyond what a JSON number can carry"),
        ("a >", "character 4: a value is missing before the end"),
    ],
)
def test_what_is_no_predicate_is_refused(text: str, refusal: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(refusal)}$"):
        Predicate.of(text)


def test_one_text_for_all_that_say_the_same() -> None:
    one, other = Predicate.of("a>1 and(b=='x')and c"), Predicate.of('((a > 1) and b == "x") and c')
    assert one == other
    assert one.text == "(a > 1) and (b == 'x') and c"
    assert one.kinds == (("a", "number"), ("b", "text"), ("c", "boolean"))
    assert (one.fields, one.numbers) == (("a", "b", "c"), ("a",))
