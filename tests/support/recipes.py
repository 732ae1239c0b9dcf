"""What the recipes of docs/guides/recipes.md are tried on: what a real worker published, in Kafka and in its log."""

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaProducer

from shoal.agents.audit import key_file
from shoal.agents.audit.ledger import Ledger
from tests.support.kafka import Brokers
from tests.support.workers import Worker, shoal, wait_until

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "examples" / "recipes"
PAGE = ROOT / "docs" / "guides" / "recipes.md"
VISITS = (ROOT / "examples" / "visits.jsonl").read_text().splitlines()
ALL = 23  # releases of all visits: 7 days, 7 days of 2 groups, 2 weeks


def replaced(text: str, names: Mapping[str, str]) -> str:
    """A recipe with other addresses and names in it; each of them was there."""
    for old, new in names.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


class Published:
    """A worker with examples/recipes/shoal.toml in a folder, as an app of its own; it lives as long as the context."""

    def __init__(self, kafka: Brokers, folder: Path, log: str = "sqlite:///shoal.db") -> None:
        self.kafka, self.folder, self._log = kafka, folder, log
        self.app, self.visits = kafka.name("recipes"), kafka.name("visits")
        self.releases = f"{self.app}.releases"
        self.config = folder / "shoal.toml"
        text = (RECIPES / "shoal.toml").read_text()
        names = {"localhost:9092": kafka.bootstrap, "shoal": self.app, "visits": self.visits, "sqlite:///shoal.db": log}
        self.config.write_text(replaced(text, {f'"{old}"': f'"{new}"' for old, new in names.items()}))
        key_file.new(folder / "shoal.key")
        self._worker: Worker | None = None

    def __enter__(self) -> Self:
        self._run("migrate", self.config)
        self._run("topics", self.config)
        self._worker = Worker(self.config, self.folder / "worker.log")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._worker is not None:
            self._worker.end()

    def produce(self, lines: Iterable[str], *, end: bool = False) -> None:
        """Send visits to the worker, as `shoal produce` does."""
        (self.folder / "visits.jsonl").write_text("".join(f"{line}\n" for line in lines))
        options = ["--end"] if end else []
        self._run("produce", self.config, "--input", self.folder / "visits.jsonl", *options)

    def wait(self, count: int = ALL) -> None:
        """Until so many releases are committed, and are in the log."""

        def done() -> bool:
            return len(self.bodies()) >= count and self._logged() >= count

        wait_until(done, 90, lambda: self._worker.text[-3000:] if self._worker else "")

    def _logged(self) -> int:
        with Ledger.open(self._log.replace("///", f"///{self.folder}/") if "sqlite" in self._log else self._log) as log:
            return log.of(self.app).published_by_workers()

    def stop(self) -> None:
        assert self._worker is not None
        self._worker.stop()

    def bodies(self) -> list[str]:
        """The committed releases of the topic."""
        return [read.value.decode() for read in self.kafka.read_committed(self.releases) if read.value]

    def abort(self, value: bytes) -> None:
        """Write a record in a transaction that is aborted, as a worker does that dies before its commit."""

        async def send() -> None:
            identity = {"enable_idempotence": True, "transactional_id": self.kafka.name()}
            async with AIOKafkaProducer(bootstrap_servers=self.kafka.bootstrap, **identity) as producer:
                await producer.begin_transaction()
                await producer.send_and_wait(self.releases, value, key=b"aborted|")
                await producer.abort_transaction()

        asyncio.run(send())

    def _run(self, *arguments: object) -> None:
        done = shoal(*arguments, cwd=self.folder)
        assert done.returncode == 0, done.stderr
