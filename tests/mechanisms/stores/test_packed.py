"""Entries of a changelog's record, packed and read again; what is no entry is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.stores.packed import (
    Packed,
    length,
    most_bytes,
    number_bytes,
    pack_numbers,
    read_length,
    read_number,
    select,
    unpack,
    unpack_numbers,
)
from tests.support.cover import in_a_loop
from tests.support.effort import examples

widths = st.sampled_from([1, 2, 3, 4, 5, 8, 16, 20])


def numbers(width: int) -> st.SearchStrategy[int]:
    """Short ones and long ones, with and without bits above the low 32."""
    return st.integers(0, 8 * width).flatmap(lambda bits: st.integers(0, (1 << bits) - 1))


def names(width: int) -> st.SearchStrategy[dict[bytes, int]]:
    return st.dictionaries(st.binary(max_size=300), numbers(width), max_size=20)


@examples(100)
@given(st.data(), widths)
def test_what_is_packed_is_read_again(data: st.DataObject, width: int) -> None:
    held = data.draw(names(width))
    entries = b"".join(packed.entries for packed in pack_numbers(0, held.items(), width))
    assert dict(unpack_numbers(entries, width)) == held
    wanted = {name: number for name, number in held.items() if len(name) % 2}
    assert dict(unpack_numbers(select(entries, width, wanted.__contains__), width)) == wanted


@examples(100)
@given(st.data(), widths, st.integers(1, 400))
def test_no_value_decides_where_entries_are_cut_or_what_they_cost(data: st.DataObject, width: int, room: int) -> None:
    held = data.draw(names(width))
    others = {name: data.draw(numbers(width)) for name in held}

    def pattern(found: list[Packed]) -> list[tuple[int, int]]:
        assert all(len(packed.entries) <= packed.cost for packed in found)
        return [(packed.names, packed.cost) for packed in found]

    for most in (None, room):
        assert pattern(pack_numbers(0, held.items(), width, most)) == pattern(
            pack_numbers(0, others.items(), width, most)
        )


@in_a_loop
@pytest.mark.parametrize("width", [1, 2, 4, 5, 8, 16, 20])
def test_the_largest_number_takes_the_most_bytes_and_no_larger_one_is_written_or_read(width: int) -> None:
    largest = (1 << 8 * width) - 1
    assert len(number_bytes(largest)) == sum(most_bytes(width))
    assert read_number(number_bytes(largest), 0, width) == (largest, sum(most_bytes(width)))
    for number in (largest + 1, -1):
        with pytest.raises(OverflowError, match="too large"):
            pack_numbers(0, [(b"ann", number)], width)
    with pytest.raises(ValueError, match=r"too large|cut off"):
        read_number(number_bytes(largest + 1), 0, width)


def test_a_first_part_has_no_more_than_its_bits() -> None:
    with pytest.raises(ValueError, match="too large"):
        read_number(b"\x80\x80\x80\x80\x20", 0, 8)


def one_by_one(entries: bytes, width: int) -> list[tuple[bytes, int]] | str:
    """What entries say, or why they are none, by the functions for one length and one number."""
    found, at = [], 0
    try:
        while at < len(entries):
            size, at = read_length(entries, at)
            name, at = entries[at : at + size], at + size
            number, at = read_number(entries, at, width)
            found.append((name, number))
    except ValueError as error:
        return str(error)
    return found


@examples(300)
@given(st.lists(st.sampled_from([0, 1, 2, 3, 5, 126, 127, 128, 129, 255]), max_size=24), widths)
def test_many_numbers_are_read_or_refused_as_each_is(raw: list[int], width: int) -> None:
    entries, found = bytes(raw), one_by_one(bytes(raw), width)
    if isinstance(found, str):
        with pytest.raises(ValueError, match=found):
            list(unpack_numbers(entries, width))
    else:
        assert list(unpack_numbers(entries, width)) == found


def test_of_many_numbers_one_that_is_too_large_is_refused() -> None:
    assert list(unpack_numbers(b"\x01a\x03\xff\x01", 5)) == [(b"a", (255 << 32) + 1)]
    with pytest.raises(ValueError, match="too large"):
        list(unpack_numbers(b"\x01a\x03\x80\x02", 5))


def test_entries_that_are_cut_off_are_refused() -> None:
    entries = b"\x03ann\x81\x01\x81\x01"
    assert len(list(unpack_numbers(entries, 8))) == 1
    for end in range(1, len(entries)):
        with pytest.raises(ValueError, match="cut off"):
            list(unpack_numbers(entries[:end], 8))
    for end in range(1, 6):
        with pytest.raises(ValueError, match="cut off"):
            list(unpack(b"\x02an\x02[]"[:end]))


def test_a_length_that_ends_nowhere_is_refused() -> None:
    assert read_length(length(300), 0) == (300, 2)
    for without_end in (b"", b"\xff", b"\xff" * 9):
        with pytest.raises(ValueError, match="cut off"):
            read_length(without_end, 0)
