"""Scans end where they are told to, whether records come one by one or in the kernel's batches."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.audit.replay.scan import before
from tests.stream.kernel.records import plain
from tests.stream.kernel.test_batches import joined, reading
from tests.stream.simulation import STAMP
from tests.support.effort import examples

# Runs of records, each with a hole before it or none, as compaction and markers leave them.
runs = st.lists(st.lists(st.tuples(st.sampled_from([0, 0, 1, 9]), plain), max_size=6), max_size=4)


@examples(100)
@given(runs, st.integers(0, 60))
def test_what_comes_before_an_offset_is_the_same_in_batches_and_one_by_one(rows: Any, offset: int) -> None:
    raw, _ = joined([([(gap, STAMP, None, value, []) for gap, value in run], 0, 0) for run in rows])
    whole, single = reading(raw, 7, whole=True)[0], list(reading(raw, 7, whole=False)[0])
    due = [record.offset for record in single if record.offset < offset]
    assert [record.offset for record in before(single, offset)] == due
    assert [record.offset for record in before(whole, offset)] == due
