"""Entries of a changelog's section, read for what names hold as bytes, whatever their kind."""

from collections.abc import Iterator

from shoal.mechanisms.stores.packed import unpack, unpack_numbers


def held_in(entries: bytes, width: int) -> Iterator[tuple[bytes, bytes]]:
    """Names, and what they hold: a number in all the bytes of its kind."""
    if not width:
        yield from unpack(entries)
    else:
        for name, number in unpack_numbers(entries, width):
            yield name, number.to_bytes(width, "big")
