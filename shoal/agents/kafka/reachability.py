"""Whether the brokers can be reached at all, and which errors of clients pass once the brokers are well again.

A change is logged once. Nothing here fails: a name that does not resolve is a broker that cannot be reached.
"""

import asyncio
import contextlib
import time

import structlog
from aiokafka import errors
from aiokafka.errors import KafkaError as ClientError

from shoal.agents.kafka.settings import KafkaSettings
from shoal.models.errors import KafkaError

log = structlog.get_logger("shoal.kafka")

CONNECT_LIMIT = 2.0
SILENCES = 2
RETRY_AFTER = 0.5
FIRST_DELAY, LAST_DELAY = 0.2, 5.0
# Kafka calls these retriable, aiokafka does not.
ALSO_PASSING = (
    errors.BrokerNotAvailableError,
    errors.ConcurrentTransactions,
    errors.KafkaTimeoutError,
    errors.ReplicaNotAvailableError,
    errors.TransactionCoordinatorFenced,
)


def may_pass(error: BaseException | None) -> bool:
    """Whether an error, or the one behind it, comes of brokers that are away, busy or electing: a retry may succeed.

    >>> may_pass(TimeoutError()), may_pass(ClientError("refused"))
    (True, False)
    """
    if isinstance(error, ClientError):
        passing = error.retriable or isinstance(error, ALSO_PASSING)
        return passing or (type(error) is ClientError and may_pass(error.__cause__))
    return isinstance(error, TimeoutError | OSError)


def name_of(error: BaseException) -> str:
    """The error's name; of one that only wraps another, the other's; our own errors by what they say."""
    if isinstance(error, KafkaError):
        return str(error)
    cause = error.__cause__
    return name_of(cause) if type(error) is ClientError and cause is not None else type(error).__name__


class BrokersNotReady(KafkaError):
    """Brokers are there, and cannot yet do what they were asked for."""


class Reach:
    """Asks by opening a connection; logs once that brokers are away, and once that they are back."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._away_since: float | None = None
        self._asked = 0.0
        self._unready = False
        self._lock = asyncio.Lock()

    @property
    def away(self) -> bool:
        """The last answer."""
        return self._away_since is not None

    async def ask(self) -> bool:
        """True if any of the configured brokers takes a connection now; asks at most once a second."""
        async with self._lock:
            if time.monotonic() - self._asked > 1.0:
                self._tell(await self._connect())
                self._asked = time.monotonic()
            return not self.away

    async def wait(self) -> None:
        """Return when a broker takes connections; asks with growing delay."""
        delay = FIRST_DELAY
        while not await self.ask():
            await asyncio.sleep(delay)
            delay = min(2 * delay, LAST_DELAY)

    async def retry(self, error: BaseException) -> None:
        """Wait before another try of what failed because brokers are away or not ready; log that once."""
        await asyncio.sleep(RETRY_AFTER)
        if await self.ask() and not self._unready:
            self._unready = True
            log.warning("brokers_unready", reason=name_of(error), doing="waiting for them; nothing is lost")
        await self.wait()

    def ready(self) -> None:
        """Note that another try succeeded."""
        if self._unready:
            log.warning("brokers_ready")
        self._unready = False

    async def _connect(self) -> bool:
        for host, port in self._settings.addresses():
            with contextlib.suppress(OSError):
                if await self._answers(host, port):
                    return True
        return False

    async def _answers(self, host: str, port: int) -> bool:
        """Whether it takes a connection. One silence may be ours, on a machine that is out of breath; not two."""
        for _ in range(SILENCES):
            with contextlib.suppress(TimeoutError):
                _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), CONNECT_LIMIT)
                writer.close()
                return True
        return False

    def _tell(self, reached: bool) -> None:
        if not reached and self._away_since is None:
            self._away_since = time.monotonic()
            log.warning("brokers_away", brokers=self._settings.brokers, doing="waiting; nothing is lost")
        elif reached and self._away_since is not None:
            log.warning("brokers_back", seconds=round(time.monotonic() - self._away_since, 1))
            self._away_since = None
