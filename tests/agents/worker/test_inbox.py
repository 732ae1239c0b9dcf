"""What waits for a partition's turn is counted in bytes of memory."""

from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.kafka.fast_records import RECORD_MEMORY, memory_of
from shoal.agents.kafka.transport import Batch
from shoal.agents.worker.inbox import Inbox, share_out
from shoal.stream.file_run import Line
from tests.support.effort import examples

SIZES = st.lists(st.integers(0, 100), max_size=30)


def test_a_record_takes_its_value_and_the_objects_around_it() -> None:
    lines = [Line(0, b"", timestamp=0), Line(1, b"x" * 1000, timestamp=0), Line(2, None, timestamp=0)]
    assert memory_of(lines) == 3 * RECORD_MEMORY + 1000


def test_partitions_share_alike() -> None:
    inboxes = [Inbox() for _ in range(3)]
    share_out(100, inboxes)
    assert [inbox.share for inbox in inboxes] == [33, 33, 33]
    share_out(100, [])


@examples(50)
@given(share=st.integers(0, 200), sizes=SIZES, steps=st.lists(st.booleans(), max_size=60))
def test_a_full_inbox_is_low_again_before_it_is_empty(share: int, sizes: list[int], steps: list[bool]) -> None:
    inbox, held = Inbox(), list[int]()
    inbox.share = share
    for size, processes in zip(sizes, steps, strict=False):
        # when a batch comes, as it does while there is room, or the first one is processed
        if not inbox.full:
            inbox.add(Batch(0, 0, [], size))
            held.append(size)
        elif processes and inbox:
            inbox.take()
            assert inbox.held == sum(held)  # what is in hand is still there
            inbox.done()
            held.pop(0)
        # then it has counted all that is there, and never a whole batch above its share
        assert inbox.held == sum(held)
        assert inbox.held - (held[-1] if held else 0) <= max(share, 0)
        assert not (inbox.full and inbox.low and inbox.held)
        assert inbox.low or inbox  # what is not low will be: there is a batch to take
    inbox.clear()
    assert (len(inbox), inbox.held) == (0, 0)
