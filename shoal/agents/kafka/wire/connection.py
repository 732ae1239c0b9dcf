"""Connections to brokers that copy as few bytes as possible.

aiokafka reads answers through a stream of asyncio, and puts requests together level by level, each of which copies what
is in it. Here an answer is received into the memory where it stays, and a request is put together once. aiokafka still
decides what is sent and how an answer is read.
"""

import asyncio
import io
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

import aiokafka.conn as conn
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.types import Array, Bytes, Int32, Schema

SIZE = 4  # bytes that say how long an answer or a request is
SMALL = 16 << 10  # answers of no more bytes, each with its size, are gathered in one buffer
LARGEST = 1 << 28  # bytes of an answer; more is asked for by none of ours, and who says so speaks no Kafka

# Names that are overridden or called, and that no public name replaces.
REQUIRED: tuple[tuple[type, str], ...] = (
    (conn.AIOKafkaConnection, "_create_reader_task"),
    (conn.AIOKafkaConnection, "_handle_frame"),
    (conn.AIOKafkaConnection, "_next_correlation_id"),
)


class Answers(conn.AIOKafkaProtocol, asyncio.BufferedProtocol):  # type: ignore[misc]  # aiokafka has no types
    """Receives what a broker answers, each answer in bytes of its own, and hands it to its connection.

    The stream that aiokafka would read from is left empty; it still says how the connection ends.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.owner: Callable[[], Any] = lambda: None
        self._small = memoryview(bytearray(SMALL))
        self._large: io.BytesIO | None = None  # an answer that is larger, and comes now
        self._room, self._filled = self._small, 0

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self._room[self._filled :]

    def buffer_updated(self, count: int) -> None:
        self._filled += count
        if self._large is None:
            self._take_small()
        elif self._filled == len(self._room):
            large, self._large = self._large, None
            self._room, self._filled = self._small, 0
            self._hand_over(large.getvalue())  # which copies nothing

    def _take_small(self) -> None:
        """Hand over what is complete, and go on with what is not, in a larger buffer if it needs one."""
        begin, end, raw = 0, self._filled, self._small
        while (first := begin + SIZE) <= end:
            size = int.from_bytes(raw[begin:first], signed=True)
            if not 0 <= size <= LARGEST:
                raise ConnectionError("this is no broker's answer")
            if first + size > end:
                if SIZE + size > SMALL:
                    self._begin_large(size, raw[first:end])
                    return
                break
            begin = first + size
            self._hand_over(bytes(raw[first:begin]))
        self._filled = end - begin
        raw[: self._filled] = bytes(raw[begin:end])

    def _begin_large(self, size: int, begin: memoryview) -> None:
        self._large = io.BytesIO(bytes(size))  # whose bytes nobody else has: they are written to where they are
        self._room, self._filled = self._large.getbuffer(), len(begin)
        self._room[: self._filled] = begin

    def _hand_over(self, answer: bytes) -> None:
        owner = self.owner()
        if owner is not None and owner.connected():  # an answer before may have closed it
            owner._handle_frame(answer)


class Connection(conn.AIOKafkaConnection):  # type: ignore[misc]
    """A connection whose answers come without a stream, and whose large requests are put together once."""

    def _create_reader_task(self) -> Any:
        self._protocol.owner = ref(self)
        return super()._create_reader_task()

    def send(self, request: Any, expect_response: bool = True) -> Any:
        if self._writer is None or not expect_response or not isinstance(request, ProduceRequest):
            return super().send(request, expect_response)
        prepared = request.prepare(self._versions)
        number = self._next_correlation_id()
        header = prepared.build_request_header(correlation_id=number, client_id=self._client_id)
        values = [prepared.get_item(name) for name in prepared.SCHEMA.names]
        pieces = [header.encode(), *pieces_of(prepared.SCHEMA, values)]
        self._writer.write(b"".join((Int32.encode(sum(map(len, pieces))), *pieces)))
        answer = self._loop.create_future()
        self._requests.append((number, prepared, answer))
        return conn.wait_for(answer, self._request_timeout)


def pieces_of(kind: Any, value: Any) -> Iterator[bytes]:
    """What a value of this kind is encoded as, in pieces, of which no large one was copied."""
    if isinstance(kind, Schema):
        for field, one in zip(kind.fields, value, strict=True):
            yield from pieces_of(field, one)
    elif isinstance(kind, Array) and value is not None:
        yield Int32.encode(len(value))
        for one in value:
            yield from pieces_of(kind.array_of, one)
    elif kind is Bytes and value is not None:
        yield Int32.encode(len(value))
        yield value
    else:
        yield kind.encode(value)


def use() -> None:
    """Have the connections of this process that are made from now on be such."""
    conn.AIOKafkaProtocol, conn.AIOKafkaConnection = Answers, Connection
