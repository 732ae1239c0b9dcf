"""Answers and requests, as they go over a connection."""

import asyncio
import struct
from weakref import ref

import pytest
from aiokafka.protocol.produce import ProduceRequest, ProduceRequest_v2, ProduceRequest_v7
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.kafka.wire.connection import LARGEST, SMALL, Answers, pieces_of
from tests.support.effort import examples


class Owner:
    """What a connection is to those that receive its answers."""

    def __init__(self, closes_after: int = 1 << 30) -> None:
        self.found: list[bytes] = []
        self._left = closes_after

    def connected(self) -> bool:
        return len(self.found) < self._left

    def _handle_frame(self, answer: bytes) -> None:
        self.found.append(answer)


async def received(stream: bytes, pieces: list[int], owner: Owner) -> int:
    """Give the stream to a protocol in pieces of these sizes, again and again; how many bytes it had room for."""
    loop = asyncio.get_running_loop()
    answers = Answers(loop.create_future(), asyncio.StreamReader(loop=loop), loop=loop)
    answers.owner = ref(owner)
    at = turn = 0
    while at < len(stream):
        room = answers.get_buffer(-1)
        assert len(room)
        count = min(len(room), pieces[turn % len(pieces)], len(stream) - at)
        room[:count] = stream[at : at + count]
        answers.buffer_updated(count)
        at, turn = at + count, turn + 1
    return at


def framed(answers: list[bytes]) -> bytes:
    return b"".join(struct.pack(">i", len(one)) + one for one in answers)


SIZES = st.integers(0, 40) | st.integers(SMALL - 10, SMALL + 10) | st.integers(0, 3 * SMALL)


@examples(200)
@given(
    sizes=st.lists(SIZES, max_size=8),
    pieces=st.lists(st.integers(1, 50) | st.integers(1, 2 * SMALL), min_size=1, max_size=5),
)
def test_answers_come_whole_and_in_order_however_they_are_cut(sizes: list[int], pieces: list[int]) -> None:
    # given answers of any size, none like another
    answers = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    # when they come in pieces
    owner = Owner()
    asyncio.run(received(framed(answers), pieces, owner))
    # then each is handed over once
    assert owner.found == answers


def test_nothing_is_handed_to_a_connection_that_an_answer_has_closed() -> None:
    owner = Owner(closes_after=2)
    asyncio.run(received(framed([b"1", b"2", b"3", bytes(2 * SMALL)]), [1 << 20], owner))
    assert owner.found == [b"1", b"2"]


def test_who_owns_nothing_any_more_gets_nothing() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        answers = Answers(loop.create_future(), asyncio.StreamReader(loop=loop), loop=loop)
        answers.get_buffer(-1)[:5] = framed([b"1"])
        answers.buffer_updated(5)

    asyncio.run(story())


@pytest.mark.parametrize("size", [-1, -(2**31), LARGEST + 1, int.from_bytes(b"HTTP")])
def test_what_is_no_answer_of_a_broker_ends_the_connection(size: int) -> None:
    with pytest.raises(ConnectionError, match="no broker"):
        asyncio.run(received(struct.pack(">i", size), [4], Owner()))


@examples(50)
@given(
    topics=st.lists(
        st.tuples(
            st.text(max_size=5),
            st.lists(st.tuples(st.integers(0, 9), st.none() | st.binary(max_size=50)), max_size=3),
        ),
        max_size=3,
    ),
    name=st.none() | st.text(max_size=5),
)
def test_a_request_is_that_of_aiokafka(topics: list[tuple[str, list[tuple[int, bytes]]]], name: str | None) -> None:
    for kind in (ProduceRequest_v2, ProduceRequest_v7):
        request = ProduceRequest(name if kind is ProduceRequest_v7 else None, -1, 1000, topics).build(kind)
        values = [request.get_item(field) for field in request.SCHEMA.names]
        assert b"".join(pieces_of(request.SCHEMA, values)) == request.encode()
