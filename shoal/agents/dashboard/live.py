"""A running deployment as the page sees it: what is published, by Kafka; budget and audit, by SQL; workers, by HTTP.

Everything is read and nothing is written: no consumer group, no transaction that writes, no key. What is away is told,
kept as it was, and asked again.
"""

import asyncio
import gzip
import time
from collections.abc import Iterable
from typing import Any

import orjson

from shoal.agents.audit.budget import BudgetReport
from shoal.agents.dashboard.book import Book
from shoal.agents.dashboard.snapshot import snapshot
from shoal.models.config.file import Config

QUEUE = 64  # messages that a listener may be behind; then it is told to ask for everything again
AT_ONCE = 500  # releases that are told one by one; of more a listener asks for everything again
WHOLE = b"event: again\ndata: {}\n\n"
LEVEL = 4  # of compression


class Hub:
    """What is known, and who listens."""

    def __init__(self, config: Config, *, asks: bool = False) -> None:
        self.config = config
        self.book = Book(app=config.kafka.app)
        self.budget: BudgetReport | None = None
        self.status: dict[str, Any] = {
            "at": 0, "kafka": {"why": None, "reading": True}, "sql": {"why": None}, "audit": None, "workers": [],
            "asks": asks,
        }  # fmt: skip
        self._listeners: set[asyncio.Queue[bytes]] = set()
        self._whole: tuple[int, bytes] | None = None
        self._version = 0

    # -- what is new

    def take(self, records: Iterable[bytes | None], *, quiet: bool = False) -> None:
        """Take in what was published, and tell those who listen; `quiet` while all of the past is read."""
        rows = [list(row) for row in map(self.book.take, records) if row is not None]
        self._version += 1
        if quiet:
            return
        if len(rows) > AT_ONCE:
            self.tell_all()
        elif rows:
            self.tell("releases", rows)

    def away(self, why: str, *, passes: bool) -> None:
        """Note that nothing can be read, and why; whatever it is, it is tried again."""
        del passes
        self.set("kafka", {**self.status["kafka"], "why": why})

    def back(self) -> None:
        """Note that brokers answer again."""
        self.set("kafka", {"why": None, "reading": False})

    def is_read(self) -> None:
        """All that was there at first has been read."""
        self.set("kafka", {"why": None, "reading": False})
        self.tell_all()

    def charged(self, budget: BudgetReport | None) -> None:
        """Note the budget and its charges."""
        if budget != self.budget:
            self.budget = budget
            self._version += 1
            self.tell_all()

    def set(self, name: str, state: Any) -> None:
        """Note how a part of the deployment does, and tell it where it changed."""
        if self.status[name] != state:
            self.status = {**self.status, name: state, "at": round(time.time())}
            self._version += 1
            self.tell("status", self.status)

    # -- who listens

    def listen(self, seen: str | None = None) -> asyncio.Queue[bytes]:
        """What is told from now on, to somebody who has seen this version; what came after it is told at once."""
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._listeners.add(queue)
        if seen is not None and seen != str(self._version):
            queue.put_nowait(WHOLE)
        return queue

    def leave(self, queue: asyncio.Queue[bytes]) -> None:
        self._listeners.discard(queue)

    def tell(self, kind: str, fields: Any) -> None:
        self._send(b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps(fields)))

    def tell_all(self) -> None:
        """Have everybody ask for everything again."""
        self._send(WHOLE)

    def _send(self, message: bytes) -> None:
        for queue in self._listeners:
            if queue.qsize() < QUEUE:
                queue.put_nowait(message)
            elif queue.qsize() == QUEUE:
                queue.put_nowait(WHOLE)

    # -- everything

    async def whole(self) -> tuple[int, bytes]:
        """All that the page is told at once: its version, and compressed JSON."""
        if self._whole is None or self._whole[0] != self._version:
            version = self._version
            reading = self.status["kafka"]["reading"] and not self.status["kafka"]["why"]
            note = f"Still reading: {self.book.releases:,} releases so far." if reading else ""
            data = orjson.dumps(
                snapshot(self.book, self.config, budget=self.budget, status=self.status, note=note)
            )  # fmt: skip
            self._whole = version, await asyncio.to_thread(gzip.compress, data, LEVEL)
        return self._whole
