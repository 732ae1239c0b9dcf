"""The kernel's stores do what their twin does with numbers and orders, apart from any rule."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.accounts import Periods, RecordKind
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.stores.packed import pack_numbers
from shoal.stream.kernel.stores import KernelPeriods
from tests.stream.kernel.lanes import KERNEL
from tests.support.effort import examples
from tests.support.entries import held_in

KINDS = (RecordKind(b"a\x00", 16), RecordKind(b"g\x00", 2))
LENGTH = 10


def lanes(length: int | None) -> tuple[Periods, Periods]:
    native = KERNEL.Stores(length, [kind.width for kind in KINDS], True)
    even = None if length is None else Even(length)
    return Periods(even, *KINDS, durable=True), KernelPeriods(native, even, *KINDS)


def test_a_number_beyond_its_width_overflows_in_both() -> None:
    for kind, number in ((0, 1 << 128), (1, 1 << 16), (1, -1)):
        for periods in lanes(None):
            periods.of(0)[kind].put(b"u", (1 << 8 * KINDS[kind].width) - 1)
            assert changes(periods) == {KINDS[kind].tag + b"u": b"\xff" * KINDS[kind].width}
            with pytest.raises(OverflowError):
                put_and_take(periods, kind, number)


def put_and_take(periods: Periods, kind: int, number: int) -> None:
    periods.of(0)[kind].put(b"u", number)
    periods.changed(kind)


def changes(periods: Periods) -> dict[bytes, bytes]:
    """What changed, by tag, period and name."""
    found: dict[bytes, bytes] = {}
    for number, (tag, width) in enumerate(KINDS):
        for packed in periods.changed(number):
            before = tag + (b"" if periods.forever else packed.period.to_bytes(8, "big", signed=True))
            found |= {before + name: held for name, held in held_in(packed.entries, width)}
    return found


names = st.integers(0, 60).map(lambda number: (b"%d" % number).ljust(number, b"x"))
puts = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 5 * LENGTH), names, st.integers(0, 2**16 - 1)), max_size=80)


@examples(100)
@given(puts, puts, st.integers(0, 40), st.integers(0, 5 * LENGTH))
def test_names_of_any_length_keep_numbers_and_order(
    before: list[Any], after: list[Any], most: int, promise: int
) -> None:
    writer, _ = lanes(LENGTH)
    for kind, time, name, number in before:
        writer.of(time)[kind].put(name, number)
    written = [(kind, packed) for kind in range(len(KINDS)) for packed in writer.changed(kind)]
    # given stores that were restored from the same changelog
    twin, kernel = lanes(LENGTH)
    for periods in (twin, kernel):
        periods.begin(1)
        for kind, packed in written:
            periods.take(kind, packed.period, packed.entries, in_order=False)
        for kind, packed in written:
            periods.runs(kind, packed.period)
        # when more is written
        for kind, time, name, number in after:
            periods.of(time)[kind].put(name, number)
    # then they say the same in the same order, and forget in the same order
    told = [[list(store.held) for _, stores in periods.each() for store in stores] for periods in (twin, kernel)]
    assert told[0] == told[1]
    assert all(kernel.changed(kind) == twin.changed(kind) for kind in range(len(KINDS)))
    for step in range(4):
        for periods in (twin, kernel):
            periods.close(promise + step * LENGTH)
        assert kernel.sizes == twin.sizes
        for kind in range(len(KINDS)):
            assert kernel.cleared(kind) == twin.cleared(kind)
            for period in twin.periods():
                first = min(most, twin.size(kind, period) - 1)
                if first >= 0:
                    pieces = [periods.pack(kind, period, first, 9, 1 + 10 * most) for periods in (kernel, twin)]
                    assert pieces[0] == pieces[1]


stretches = st.lists(st.tuples(st.integers(0, 90), st.integers(1, 50), st.integers(0, 2**16 - 1)), max_size=4)
sections = st.lists(st.tuples(st.booleans(), st.booleans(), stretches), max_size=12)


@examples(200)
@given(sections)
def test_a_log_is_restored_to_the_same_numbers_and_order(told: list[Any]) -> None:
    """Names that follow one another as they came, and such as do not; more of them than are read at a time."""
    lanes_of_log, record = lanes(None), 1
    for is_next_record, in_order, runs in told:
        record += is_next_record
        held = [(b"%d" % n, (n * number) % 2**16) for first, count, number in runs for n in range(first, first + count)]
        for periods in lanes_of_log:
            periods.begin(record)
            periods.take(1, 0, entries_of(held), in_order=in_order)
    found = []
    for periods in lanes_of_log:
        ends = periods.runs(1, 0)
        size = periods.size(1, 0)
        found.append((ends, size, periods.pack(1, 0, 0, size, 10**6) if size else [], changes(periods)))
    assert found[0] == found[1]


def entries_of(held: list[tuple[bytes, int]]) -> bytes:
    """Entries of a record, in which a name may be more than once."""
    return b"".join(packed.entries for packed in pack_numbers(0, held, KINDS[1].width))
