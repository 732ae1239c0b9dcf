"""Someone who types the commands of a guide, on a broker that others use, too: so apps and topics have other names."""

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.kafka import Brokers
from tests.support.workers import Worker, shoal, wait_until

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMES = ('"localhost:9092"', '"shoal"', '"presence"', '"purchases"', '"baskets"')  # of a broker, apps and topics
PATIENCE = 90.0  # seconds until something that workers are about to do is there


class Typist:
    """A folder like a fresh checkout, and what was started in it; workers live as long as the context."""

    def __init__(self, kafka: Brokers, folder: Path) -> None:
        self.folder, self.workers = folder, dict[str, Worker]()
        self._logs = (folder / f"{number}.log" for number in count())  # one for each start, also of the same file
        self.app, self.topic = kafka.name("app"), kafka.name("events")
        new = (kafka.bootstrap, self.app, self.app, self.topic, self.topic)
        self.names = {old: f'"{name}"' for old, name in zip(NAMES, new, strict=True)}
        (folder / "examples").mkdir()
        for name in ("shoal.toml", "purchases.jsonl"):
            shutil.copy(ROOT / "examples" / name, folder / "examples")
        self.save("examples/shoal.toml", (folder / "examples/shoal.toml").read_text())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for worker in self.workers.values():
            worker.end()

    def save(self, name: str, text: str) -> None:
        """A configuration of a page as a file, with names of its own."""
        for old, new in self.names.items():
            text = text.replace(old, new)
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_text(text)

    def read(self, page: str, *blocks: int, waits: Mapping[str, str] | None = None) -> str:
        """Type the blocks of shell of a page, counted from 0, and return what they print.

        A command that begins with a key of `waits` is typed until it says what stands there, as by a reader who waits.
        """
        shell = blocks_of(page, "sh")
        said = []
        for line in "\n".join(shell[number] for number in blocks).replace("\\\n", " ").splitlines():
            for command in re.split(r" && ", line):
                said.append(self._type(command, waits or {}))
        return "".join(said)

    def _type(self, command: str, waits: Mapping[str, str]) -> str:
        words = shlex.split(command, comments=True)
        if words[:2] == ["shoal", "broker"] or not words:
            return ""  # it is there
        if words[:2] == ["shoal", "worker"]:
            name = words[-1]
            instance = name if "--instance" in words else None
            self.workers[name] = Worker(self.folder / words[2], next(self._logs), instance)
            self.workers[name].wait_owns()
            return ""
        expected = next((said for start, said in waits.items() if command.startswith(start)), None)
        said = self.run(command)
        if expected is None:
            return said

        def is_there() -> bool:
            nonlocal said
            said = said if expected in said else self.run(command)
            return expected in said

        wait_until(is_there, PATIENCE, lambda: f"{command}: {said}", every=0.5, patience=1)
        return said

    def run(self, command: str, *, status: int = 0) -> str:
        """Everything that a command prints, with the names of the page."""
        typed, _, into = command.partition(" > ")
        words = shlex.split(typed, comments=True)
        if words[0] == "shoal":
            done = shoal(*words[1:], cwd=self.folder)
            if into:
                (self.folder / into).write_text(done.stdout)
        else:
            done = subprocess.run(["sh", "-c", command], cwd=self.folder, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == status, f"{command}: {said}"
        return said.replace(self.app, "shoal").replace(self.topic, "purchases")


def blocks_of(page: str, language: str) -> list[str]:
    """The blocks of a language in a guide."""
    return [body for name, body in FENCE.findall((GUIDES / page).read_text("utf-8")) if name == language]


def printed(page: str, said: str) -> set[str]:
    """Lines that a page shows as output and that commands printed."""
    shown = {line.strip() for block in blocks_of(page, "text") for line in block.splitlines()}
    return shown & {line.strip() for line in said.splitlines()}
