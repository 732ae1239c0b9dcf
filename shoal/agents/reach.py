"""Whether the brokers can be reached at all: what tells "broker away" from "broker slow".

In come host names; out comes yes or no, and one line in the log when that changes. Nothing here fails: a name that
does not resolve is a broker that cannot be reached.
"""

import asyncio
import contextlib
import time

import structlog

from shoal.agents.settings import KafkaSettings

log = structlog.get_logger("shoal.kafka")

CONNECT_LIMIT = 2.0
SILENCES = 2
FIRST_DELAY, LAST_DELAY = 0.2, 5.0


class Reach:
    """Asks by opening a connection, and says once that brokers are away and once that they are back."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._brokers = settings.brokers
        self._away_since: float | None = None
        self._asked = 0.0
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

    async def _connect(self) -> bool:
        for address in self._brokers.split(","):
            host, _, port = address.strip().rpartition(":")
            with contextlib.suppress(OSError, ValueError):
                if await self._answers(host.strip("[]") or address, int(port or 9092)):
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
            log.warning("brokers_away", brokers=self._brokers, doing="waiting; nothing is lost")
        elif reached and self._away_since is not None:
            log.warning("brokers_back", seconds=round(time.monotonic() - self._away_since, 1))
            self._away_since = None
