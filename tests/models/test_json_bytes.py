"""JSON made for many at once is that of each, and what is kept by the thousand takes the memory of its bytes."""

import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.json_bytes import json_bytes, json_of_each
from shoal.models.records import ReleaseForm, clip_bytes, dead_letter_bytes, shown_bytes
from tests.support.cover import in_a_loop

FORM = ReleaseForm("basket", {"epsilon": 1.0, "version": 1})
KEPT: list[Callable[[int], bytes]] = [
    lambda seq: FORM.release({"group": "GB", "seq": seq}, {"withheld": 0}),
    lambda seq: shown_bytes("basket", 1, str(seq), at=0, epsilon=1.0),
    lambda seq: clip_bytes("basket", 1, str(seq), at=0, high=20.0, epsilon=1.0),
    lambda seq: dead_letter_bytes("not-json", "basket", "purchases", 0, seq, b"{"),
]


@in_a_loop
@pytest.mark.parametrize("make", KEPT)
def test_json_that_waits_for_its_transaction_takes_little_more_than_its_length(make: Callable[[int], bytes]) -> None:
    make(0)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = [make(seq) for seq in range(200)]
        took = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert Fraction(took, len(kept)) < max(map(len, kept)) + 100


texts = st.one_of(st.text(max_size=3), st.sampled_from(["],[", "]],[[", '"],["']))
flat = st.lists(st.one_of(texts, st.integers(-9, 9), st.lists(st.lists(texts, max_size=2), max_size=2)), max_size=4)
rows = st.lists(st.builds(lambda at, row: [at, *row], st.integers(0, 9), flat), min_size=1, max_size=3)


@given(st.lists(flat, max_size=5), st.lists(rows, max_size=4))
def test_json_of_many_lists_is_that_of_each(lists: list[list[Any]], runs: list[list[list[Any]]]) -> None:
    assert json_of_each(lists) == list(map(orjson.dumps, lists))
    assert json_of_each(runs, depth=2) == list(map(orjson.dumps, runs))


fields = st.dictionaries(
    st.sampled_from(["group", "seq", "value", "low"]), st.one_of(texts, st.floats(), st.none()), min_size=1
)


@given(fields, st.dictionaries(st.sampled_from(["withheld", "mechanism"]), st.dictionaries(texts, st.integers(0, 9))))
def test_a_release_is_the_json_of_all_its_fields(differ: dict[str, Any], details: dict[str, Any]) -> None:
    common = {"epsilon": 0.1, "delta": 0.0, "unit": 'us"er', "version": 3}
    made = ReleaseForm('b"asket', common).release(differ, details)
    assert made == json_bytes({"metric": 'b"asket'} | differ | common | details)
