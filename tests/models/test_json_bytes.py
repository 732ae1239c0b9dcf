"""What is kept by the thousand takes the memory of its bytes."""

import tracemalloc
from collections.abc import Callable
from fractions import Fraction

import pytest

from shoal.models.records import clip_bytes, dead_letter_bytes, release_bytes, shown_bytes

KEPT: list[Callable[[int], bytes]] = [
    lambda seq: release_bytes({"metric": "basket", "group": "GB", "version": 1, "seq": seq}),
    lambda seq: shown_bytes("basket", 1, str(seq), at=0, epsilon=1.0),
    lambda seq: clip_bytes("basket", 1, str(seq), at=0, high=20.0, epsilon=1.0),
    lambda seq: dead_letter_bytes("not-json", "basket", "purchases", 0, seq, b"{"),
]


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
