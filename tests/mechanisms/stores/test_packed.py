"""Entries of a changelog's record, packed and read again; what is no entry is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.stores.packed import length, pack_numbers, read_length, unpack
from tests.support.effort import examples


@examples(50)
@given(st.dictionaries(st.binary(max_size=300), st.integers(0, 2**32 - 1), max_size=20))
def test_what_is_packed_is_read_again(numbers: dict[bytes, int]) -> None:
    entries = b"".join(packed.entries for packed in pack_numbers(0, numbers.items(), 4))
    assert {name: int.from_bytes(held, "big") for name, held in unpack(entries, 4)} == numbers


def test_entries_that_are_cut_off_are_refused() -> None:
    entries = b"".join(packed.entries for packed in pack_numbers(0, [(b"ann", 7)], 4))
    for end in range(1, len(entries)):
        with pytest.raises(ValueError, match="cut off"):
            list(unpack(entries[:end], 4))


def test_a_length_that_ends_nowhere_is_refused() -> None:
    assert read_length(length(300), 0) == (300, 2)
    for without_end in (b"", b"\xff", b"\xff" * 9):
        with pytest.raises(ValueError, match="cut off"):
            read_length(without_end, 0)
