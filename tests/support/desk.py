"""A folder in which `shoal run` reads files: the configuration, events in several forms, and what is left behind."""

import csv
import io
import json
import os
import random
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from shoal.agents.audit import key_file
from shoal.agents.audit.ledger import Ledger
from shoal.agents.cli.main import app
from shoal.models.errors import InputError

CONFIG = """
[audit]
url = "sqlite:///log.db"
[privacy]
key_file = "shoal.key"
epsilon = 4
[[metric]]
name = "level"
topic = "readings"
user = "who"
value = "x"
time = "at"
group = "room"
statistic = "mean"
range = [0, 100]
epsilon = 1
max_per_group = 4
slot = "1h"
"""
PLACES = CONFIG.replace('group = "room"\n', 'cell = { h3 = 8, lat = "lat", lon = "lon" }\n')
MEAN = CONFIG.replace('slot = "1h"', 'every = "1h"\nusers = 20\nalgorithm = "naive"')
draw = random.Random(5)
EVENTS: list[dict[str, Any]] = [
    {"who": f"u{n % 20}", "at": f"2024-01-01T{n // 60:02d}:{n % 60:02d}:00Z", "x": round(draw.uniform(0, 100), 2),
     "room": "ab"[n % 2], "lat": 51.5, "lon": -0.1}
    for n in range(240)
]  # fmt: skip
OPTIONS = ("--output", "out.jsonl")


def lines(events: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def table(events: Sequence[dict[str, Any]], delimiter: str = ",") -> bytes:
    text = io.StringIO()
    rows = csv.DictWriter(text, list(events[0]), delimiter=delimiter, lineterminator="\n")
    rows.writeheader()
    rows.writerows(events)
    return text.getvalue().encode()


def changed(**fields: Callable[[dict[str, Any]], Any]) -> list[dict[str, Any]]:
    return [event | {name: change(event) for name, change in fields.items()} for event in EVENTS]


def seconds(event: dict[str, Any]) -> int:
    return int(datetime.fromisoformat(event["at"]).timestamp())


class Desk:
    """A folder with a key, a configuration and inputs; each run begins with an empty ledger unless it is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        key_file.new(folder / "shoal.key")
        self.say(CONFIG)

    def say(self, config: str) -> None:
        (self.folder / "shoal.toml").write_text(config)

    def put(self, name: str, content: bytes) -> Path:
        (self.folder / name).write_bytes(content)
        return self.folder / name

    def call(self, *arguments: str, stdin: bytes | None = None) -> Result:
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            return CliRunner().invoke(app, ["run", "shoal.toml", *arguments], input=stdin)
        finally:
            os.chdir(before)

    def run(self, name: str, *more: str) -> bytes:
        result = self.call("--input", name, *OPTIONS, *more)
        if result.exception is not None:
            raise result.exception
        return (self.folder / "out.jsonl").read_bytes()

    def forget(self) -> None:
        for name in ("log.db", "log.db-wal", "log.db-shm", "shoal.key.used", "out.jsonl"):
            (self.folder / name).unlink(missing_ok=True)

    def refused(self, name: str, *more: str, error: type[Exception] = InputError) -> str:
        with pytest.raises(error) as caught:
            self.run(name, *more)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def charged(self) -> int:
        with Ledger.open(f"sqlite:///{self.folder}/log.db") as ledger:
            return len(ledger.of("shoal").versions())
