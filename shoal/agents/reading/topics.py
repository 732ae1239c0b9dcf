"""A topic of releases for code that knows no event loop: an iterator, whose reading happens in a thread of its own.

So it works in a notebook, which has an event loop running already.
"""

import asyncio
import queue
import threading
import warnings
from collections.abc import Callable, Coroutine, Generator, Iterable
from typing import Any

from shoal.agents.audit.replay.scan import committed
from shoal.agents.kafka.client_errors import explain
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.process_settings import quiet_libraries
from shoal.agents.reading.live import Reader
from shoal.agents.reading.source import Found
from shoal.models.errors import KafkaError, ShoalError

AHEAD = 16  # batches that are read before they are asked for
LOOK = 0.1  # seconds between two looks whether anybody still asks
Put = Callable[[list[Found]], None]


class _Left(Exception):
    """Ends the reading thread: whoever took releases from the iterator has closed it."""


def past(settings: KafkaSettings, topic: str) -> Generator[Found, None, None]:
    """All committed records that are there now, partition by partition.

    Raises:
        KafkaError: no broker answers, or the topic does not exist.
    """

    async def read(put: Put) -> None:
        async for records in committed(settings, topic):
            put([(f"{topic}, offset {each.offset}", each.value) for each in records])

    return _in_thread(settings, read)


def growing(settings: KafkaSettings, topic: str) -> Generator[Found, None, None]:
    """All committed records, then each as it is published, without end; brokers that are away are waited for.

    Raises:
        KafkaError: something has to be corrected, say that the topic does not exist.
    """

    async def read(put: Put) -> None:
        await Reader(_Listener(topic, put), settings, (topic,), "read").run()

    return _in_thread(settings, read)


class _Listener:
    """Hands on what a reader of live topics reads."""

    def __init__(self, topic: str, put: Put) -> None:
        self._topic, self._put = topic, put
        self._is_away = False

    def take(self, records: Iterable[bytes | None], *, quiet: bool = False) -> None:
        del quiet
        self._put([(self._topic, value) for value in records])

    def is_read(self) -> None:
        self.back()

    def away(self, why: str, *, passes: bool) -> None:
        """Wait for brokers that are away, and say so once; end where something is to be corrected."""
        if not passes:
            raise KafkaError(why)
        if not self._is_away:
            warnings.warn(f"shoal: {why}; reading goes on when one does", stacklevel=2)
        self._is_away = True

    def back(self) -> None:
        self._is_away = False


def _in_thread(
    settings: KafkaSettings, read: Callable[[Put], Coroutine[Any, Any, None]]
) -> Generator[Found, None, None]:
    """What a coroutine puts, as an iterator. It is read a little ahead, and given up when the iterator is closed."""
    found: queue.Queue[list[Found] | BaseException | None] = queue.Queue(AHEAD)
    left = threading.Event()

    def put(batch: list[Found] | BaseException | None) -> None:
        while not left.is_set():
            try:
                return found.put(batch, timeout=LOOK)
            except queue.Full:
                continue
        raise _Left

    async def watched() -> None:
        reading = asyncio.ensure_future(read(put))
        while not left.is_set() and not reading.done():
            await asyncio.wait([reading], timeout=LOOK)
        reading.cancel()
        await reading

    def run() -> None:
        try:
            asyncio.run(watched())
            put(None)
        except (_Left, asyncio.CancelledError):
            return
        except BaseException as error:  # whatever it is, it is raised where the records are asked for
            try:
                put(error)
            except _Left:
                return

    quiet_libraries()
    thread = threading.Thread(target=run, name="shoal.read", daemon=True)
    thread.start()
    try:
        while (batch := found.get()) is not None:
            if isinstance(batch, BaseException):
                raise _as_ours(batch, settings)
            yield from batch
    finally:
        left.set()
        thread.join()


def _as_ours(error: BaseException, settings: KafkaSettings) -> BaseException:
    """An error of the client in words."""
    if isinstance(error, ShoalError):
        return error
    meaning = explain(error)
    if meaning is None and isinstance(error, OSError | TimeoutError):
        meaning = f"no broker of {settings.brokers} answers; is Kafka running?"
    return error if meaning is None else KafkaError(f"{settings.brokers}: {meaning}")
