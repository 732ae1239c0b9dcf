"""One app without a broker: file runs and workers over one real audit log, and all that they ever published.

Topics are lists, and a transaction is committed as a whole; ledger, key file, registration, guard and machines are the
real ones. So a test can put the steps of several runs and workers into any order, kill them, and restore copies.
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from shoal.agents.audit import key_file
from shoal.agents.audit.app_ledger import End
from shoal.agents.audit.continuation import Continuation
from shoal.agents.audit.database import Unavailable
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.session import Session, open_session
from shoal.agents.kafka.settings import BOUND, RELEASE, KafkaSettings
from shoal.agents.kafka.topics import Verified
from shoal.agents.worker.health import Health
from shoal.agents.worker.outbox import BoundMachine, ReleaseMachine
from shoal.agents.worker.stages import Stages
from shoal.mechanisms.noise.keyed import derive
from shoal.models.records import record_key
from shoal.models.times import iso
from shoal.stream import file_run
from shoal.stream.file_run import FileRun, Line, Output
from shoal.stream.machine import Outbox, StagePartition
from shoal.stream.partitioning import PARTITIONERS
from shoal.stream.topic import TopicPlan, plan_topic

CONFIG = """
[audit]
url = "{url}"
[privacy]
key_file = "{folder}/shoal.key"
epsilon = 1000
[kafka]
brokers = "localhost:1"
[[metric]]
name = "m"
topic = "events"
user = "u"
value = "x"
time = "t"
range = [0, 1]
{metric}
"""
MEAN = 'statistic = "mean"\nalgorithm = "naive"\nepsilon = 1\nmax_contributions = 5\nusers = 10\nevery = "10s"\n'
GROUPS = MEAN.replace("max_contributions", "max_per_group") + 'group = "g"\n'
CELLS = (
    'statistic = "mean"\nepsilon = 1\nmax_per_group = 2\nslot = "10s"\ngroup = "g"\nunit = "user-slot"\n'
    "max_groups = 1\n"
)
OFTEN = GROUPS.replace('every = "10s"', 'every = "contribution"')
FULL = MEAN.replace('"naive"', '"full"').replace(
    "epsilon = 1\nmax_contributions = 5", "epsilon = 400\nmax_contributions = 8"
)
FULL = FULL.replace("users = 10", 'users = 4\nfailure = "0.5"')


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file run appends to the audit log after every second record."""
    monkeypatch.setattr(file_run, "CHUNK", 2)


def event(user: str, value: float, time: int, group: str = "a") -> bytes:
    return orjson.dumps({"u": user, "x": value, "t": time, "g": group})


@dataclass(frozen=True)
class Record:
    """A record of a topic."""

    offset: int
    value: bytes
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes]] = ()
    timestamp: int = 4_000_000_000_000


@dataclass
class Topics:
    """What Kafka holds: the events, and what was committed."""

    events: list[Record]
    contributions: list[list[Record]]
    releases: list[list[Record]]
    activations: list[list[Record]]
    states: dict[StagePartition, dict[bytes, bytes]] = field(default_factory=dict)
    audited: dict[tuple[str, int], int] = field(default_factory=dict)


class App:
    """A folder with configuration, key and log; its topics; what was shown or committed, by id."""

    def __init__(self, folder: Path, metric: str, events: Sequence[bytes], *, homes: int = 2, url: str = "") -> None:
        self.folder, self.homes = folder, homes
        self.config = folder / "shoal.toml"
        self.config.write_text(CONFIG.format(url=url or f"sqlite:///{folder}/log.db", folder=folder, metric=metric))
        key_file.new(folder / "shoal.key")
        records = [Record(offset, raw) for offset, raw in enumerate(events)]
        empty: list[list[list[Record]]] = [[[] for _ in range(homes)] for _ in range(3)]
        self.topics = Topics(records, empty[0], empty[1], empty[2])
        self.published: dict[str, set[bytes]] = {}
        self.is_away = False
        self._plan: TopicPlan | None = None
        self._open = ExitStack()

    def __enter__(self) -> "App":
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def session(self) -> Session:
        """A session of its own, as another process would have it; its database can be away."""
        session = self._open.enter_context(open_session(self.config))
        for name in ("read", "write"):
            setattr(session.ledger.database, name, self._unless_away(getattr(session.ledger.database, name)))
        return session

    def _unless_away(self, call: Any) -> Any:
        def transaction() -> Any:
            if self.is_away:
                raise Unavailable("audit log: the database does not answer")
            return call()

        return transaction

    def add(self, events: Iterable[bytes]) -> None:
        """More events come to the topic."""
        for raw in events:
            self.topics.events.append(Record(len(self.topics.events), raw))

    def publish(self, values: Sequence[bytes]) -> None:
        for value in values:
            self.published.setdefault(orjson.loads(value)["id"], set()).add(value)

    @property
    def rows(self) -> set[bytes]:
        """All that was ever published; one id has one value."""
        assert all(len(values) == 1 for values in self.published.values()), self.published
        return {value for values in self.published.values() for value in values}

    def stream_of(self, events: Sequence[bytes], *, end: bool = True) -> set[bytes]:
        """What a file of these events releases, in an app of its own."""
        if self._plan is None:
            self._plan = plan_of(self.session())
        runner = FileRun(self._plan)
        return {release.value for output in runner.outputs(lines(events), end=end) for release in output.releases}

    def copy_log(self) -> None:
        """Keep a copy of the log, as a backup does."""
        with Ledger.open(f"sqlite:///{self.folder}/log.db") as ledger, ledger.database.write() as connection:
            connection.exec_driver_sql("SELECT 1")
        for file in self.folder.glob("log.db*"):
            shutil.copy(file, self.folder / file.name.replace("log.db", "copy.db"))

    def restore_log(self) -> None:
        """Put the copy in the log's place; nothing may be open."""
        self._open.close()
        for file in self.folder.glob("log.db*"):
            file.unlink()
        for file in self.folder.glob("copy.db*"):
            shutil.copy(file, self.folder / file.name.replace("copy.db", "log.db"))


def plan_of(session: Session) -> TopicPlan:
    return plan_topic(session.config, "events", session.key.secret, source_partitions=1, contributions_partitions=1)


def lines(events: Sequence[bytes]) -> Iterator[Line]:
    return (Line(offset, raw) for offset, raw in enumerate(events))


class Run:
    """`shoal run`, step by step: registered at once, an output made with each step.

    It is shown at once, unless `together` rows are to be written in one transaction.
    """

    def __init__(self, app: App, events: Sequence[bytes], *, end: bool = False, together: int = 1) -> None:
        self._app, self._session, self._end = app, app.session(), end
        plan = plan_of(self._session)
        self._continuation = Continuation(self._session.app_ledger, plan, self._session.remember, together=together)
        self._session.register(file_run=True, topic="events")
        self._runner = FileRun(plan)
        self._outputs: Iterator[Output] | None = self._runner.outputs(lines(events), end=end)

    @property
    def is_over(self) -> bool:
        """Whether its input has ended, or it was killed."""
        return self._outputs is None

    def step(self) -> None:
        """The next output, and after the last one the end."""
        if self._outputs is None:
            return
        output = next(self._outputs, None)
        if output is None:
            self._outputs = None
            self._publish(self._continuation.finish())
            self._note_end()
        else:
            self._publish(self._continuation.take(output))

    def _publish(self, outputs: Iterable[Output]) -> None:
        for done in outputs:
            self._app.publish([release.value for release in done.releases])

    def _note_end(self) -> None:
        if self._end:
            ends = [
                End(self._session.config.id_of(metric.parts), iso(self._runner.bound.watermark(metric.clock) or 0),
                    derive(metric.key, "input", b"events").hex())
                for metric in self._runner.plan.metrics
            ]  # fmt: skip
            self._session.app_ledger.append([], ends=ends, run=self._session.ledger.run)

    def finish(self) -> None:
        """All steps."""
        while not self.is_over:
            self.step()

    def kill(self) -> None:
        """It makes no further step."""
        self._outputs = None


class Worker:
    """A worker with some of the partitions: of the source's one, and of the contributions."""

    def __init__(self, app: App, homes: Sequence[int] | None = None, *, bound: bool = True) -> None:
        self._app, self._topics = app, app.topics
        self._settings = KafkaSettings("localhost:1", "shoal", partitions=app.homes)
        self.health = Health()
        self.session = app.session()
        self.domain = Stages(self.session, self._settings, self.health)
        self.verified = Verified({"events": 1, "shoal.contributions": app.homes})
        self.domain.agree(self.verified)
        self.homes = list(range(app.homes)) if homes is None else list(homes)
        self._has_bound = bound
        self._machines: dict[StagePartition, BoundMachine | ReleaseMachine] = {}

    def _machine(self, partition: StagePartition) -> BoundMachine | ReleaseMachine:
        machine = self._machines.get(partition)
        if machine is None:
            machine = self.domain.machine(partition)
            machine.restore(self._topics.states.get(partition, {}))
            if machine.next_offset is None:
                machine.start(0)
            if isinstance(machine, ReleaseMachine):
                last = self._topics.releases[partition.number][-1:]
                machine.check_last(dict(last[0].headers) if last else None)
                self.domain._compare_heads(machine)
            self._machines[partition] = machine
        return machine

    def crash(self) -> None:
        """What is not committed is lost."""
        self._machines.clear()

    def bound(self, count: int) -> None:
        """One transaction of the bound stage, of so many events at most."""
        if not self._has_bound:
            return
        machine = self._machine(StagePartition(BOUND, "events", 0))
        first = machine.next_offset or 0
        records = self._topics.events[first : first + count]
        if records:
            machine.process(records, records[-1].offset + 1)
            self._commit(StagePartition(BOUND, "events", 0), machine.outbox())

    def release(self, home: int, count: int) -> None:
        """One transaction of the release stage, of so many messages at most, if it makes one."""
        partition = StagePartition(RELEASE, self._settings.contributions, home)
        machine = self._machine(partition)
        assert isinstance(machine, ReleaseMachine)
        first = machine.next_offset or 0  # also of what is withheld: it was read
        records = self._topics.contributions[home][first : first + count]
        if records and machine.backlog < self._settings.max_unflushed and not machine.pending():
            machine.process(records, records[-1].offset + 1)
        while machine.pending():
            machine.work()
        self._commit(partition, machine.outbox())

    def _commit(self, partition: StagePartition, outbox: Outbox | None) -> None:
        """All of a transaction becomes visible."""
        if outbox is None:
            return
        state = self._topics.states.setdefault(partition, {})
        for key, value in outbox.changelog:
            if value is None:
                state.pop(key, None)
            else:
                state[key] = value
        for (topic, number), records in outbox.records.items():
            name = topic.partition(".")[2]
            if name == "dead-letters":
                continue
            log: list[Record] = getattr(self._topics, name)[number]
            for name_of_group, body, headers in records:
                log.append(Record(len(log), body, name_of_group, headers))
            if name == "releases":
                self._app.publish([body for _, body, _ in records])

    def audit(self) -> None:
        """The audit stage, to its end."""
        for topic, name in ((self._settings.activations, "activations"), (self._settings.releases, "releases")):
            for home in self.homes:
                log = getattr(self._topics, name)[home]
                first = self._topics.audited.get((name, home), 0)
                self.domain.sink(topic, home, log[first:])
                self._topics.audited[name, home] = len(log)

    def finish(self) -> None:
        """Work until there is nothing to do, and what waits waits for others."""
        before: Any = None
        while (now := self._progress()) != before:
            before = now
            self.bound(1000)
            for home in self.homes:
                self.release(home, 1000)
            self.audit()

    def _progress(self) -> Any:
        offsets = {partition: machine.next_offset for partition, machine in self._machines.items()}
        return offsets, len(self._app.published)

    @property
    def withheld(self) -> set[str]:
        """Metrics that wait."""
        return self.domain.withheld


PEOPLE = [(f"user{n % 4}", 0.25 * (n % 5), 3 * n, "ab"[n % 2]) for n in range(14)]
EVENTS = [event(*one) for one in PEOPLE]
HALF = EVENTS[:8]
VALUES = [event(user, 1 - value, time, group) for user, value, time, group in PEOPLE]
ELSEWHERE = [event(user, value, time, "c") for user, value, time, _ in PEOPLE]


def app_of(folder: Path, metric: str, topic: list[bytes], url: str = "") -> App:
    return App(folder, metric, topic, url=url)


def home_of(group: str) -> int:
    """The contributions partition of a group, of two."""
    return PARTITIONERS["murmur2"](record_key("m", group).encode(), 2)


def of_one_stream(app: App, *inputs: list[bytes]) -> None:
    assert app.rows
    assert any(app.rows <= app.stream_of(events) for events in inputs or (EVENTS, VALUES, ELSEWHERE))
