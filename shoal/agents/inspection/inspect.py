"""Looks at everything that a worker needs, in the order in which one thing stands on another, and changes nothing.

A refusal ends its own section; what does not stand on it is looked at all the same, so that one command says all that
has to be mended. The guarantee stands on the configuration alone, and is said whatever key, ledger and brokers say.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from shoal.agents.audit.app_ledger import ended_when
from shoal.agents.audit.budget import BudgetReport
from shoal.agents.audit.database import refuse_unwritable
from shoal.agents.audit.key_file import Key
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.requests import Agreement
from shoal.agents.audit.session import Session, epochs_of, load_config, read_key, refuse_absent
from shoal.agents.diagnosis import ask_workers, diagnose, refuse_what_is_not_well, told
from shoal.agents.inspection.findings import BROKERS, OF_KAFKA, Asked, Findings, Released
from shoal.agents.inspection.latency import latencies
from shoal.agents.inspection.lives import lives
from shoal.agents.inspection.promises import in_words, promises
from shoal.agents.inspection.times_ahead import times_expected_ahead
from shoal.agents.kafka.settings import KafkaSettings, settings_of
from shoal.agents.lane import lane_of_environment, unknown_of_config, words_of
from shoal.agents.people import add_people
from shoal.agents.plan.caveats import caveats
from shoal.mechanisms.words import many
from shoal.models.config.file import Config
from shoal.models.errors import KafkaError, LedgerError
from shoal.models.tables import ENDED
from shoal.models.version import VersionId

NO_KAFKA = "no [kafka] section: only what `shoal run` needs was checked"
FIRST = ("metrics", "guarantee", "unit", "budget", "partitions", "log")
STATES = "states"
SECTIONS = ("configuration", "guarantee", "key", "ledger", *OF_KAFKA, STATES, "kernel", "workers")


class Inspection:
    """A configuration and all that it stands on, looked at once."""

    def __init__(self, path: Path, people: int | None = None, workers: str | None = None) -> None:
        self.findings = Findings(*SECTIONS)
        self._fields: dict[str, Any] = {}  # for programs, beside the sections
        self.warnings: list[str] = []
        self._path, self._people, self._names = path, people, workers

    def fields(self) -> dict[str, Any]:
        """What was found, for programs; the first keys in the order that they always had."""
        return {key: self._fields[key] for key in FIRST if key in self._fields} | self._fields

    @property
    def internal(self) -> list[str]:
        """The topics that are to be protected like the events; none if it did not come to that."""
        return list(self._fields.get("internal", ()))

    def look(self) -> None:
        """Look at all of it."""
        with ExitStack() as closing:
            config = self._configuration()
            if config is not None:
                self._all(config, closing)
        if self._names is not None:
            self._workers(self._names)

    def _all(self, config: Config, closing: ExitStack) -> None:
        key, ledger, logged = self._key(config), self._ledger(config, closing), 0
        if ledger is not None:
            with self.findings.looking_at("ledger"):
                config = config.in_epochs(epochs_of(ledger, config))
                logged = ledger.of(config.kafka.app).published_by_workers()  # before the topic, which is ahead of it
        asked = self._kafka(config, ledger)
        self._fields |= asked.fields()
        self._warn(config, asked)
        self._kernel(config)
        agreement = book = persons = None
        if key is not None and ledger is not None:
            self._states(config, asked, Session(self._path, config, key, ledger))
            if asked.released is not None:
                self._logged(config, ledger, asked.released, logged)
            agreement = self._agree(Session(self._path, config, key, ledger), asked.partitions)
            if agreement is not None:
                book, persons = ledger.budget_report(), ledger.persons()
        self._guarantee(config, agreement, book, persons)

    def _kafka(self, config: Config, ledger: Ledger | None) -> Asked:
        if not config.has_kafka:
            self.findings.sections[BROKERS].leave(NO_KAFKA)
            return Asked(warnings=[NO_KAFKA])
        from shoal.agents.inspection.brokers import ask_kafka  # a file run's check need not wait for a client of Kafka

        registered = {} if ledger is None else ledger.of(config.kafka.app).partitions()
        return ask_kafka(self.findings, config, registered)

    def _states(self, config: Config, asked: Asked, session: Session) -> None:
        """Whether workers could take over the states that are there, and whose clocks are ahead of today."""
        if not asked.partitions:
            return
        from shoal.agents.inspection.clocks import positions, warnings
        from shoal.agents.inspection.states import Judge, waiting

        with self.findings.looking_at(STATES) as found:
            judge = Judge(settings_of(config), self._path, config.topics, session.ledger, session.key.secret)
            states, refusals = judge.refusals(asked.partitions)
            for error in refusals:
                self.findings.refuse(STATES, error)
            if not refusals:
                found.ok(f"a worker could go on with {many(sum(one.raw_mark is not None for one in states), 'state')}")
            for loss in judge.losses:
                found.ok(loss.words())
            for text in (*waiting(states), *warnings(self._path, positions(config, states))):
                found.warn(text)
                self.warnings.append(text)

    def _warn(self, config: Config, asked: Asked) -> None:
        of_times = times_expected_ahead(config.metrics) if config.has_kafka else []
        said = [*caveats(config.metrics), *of_times]
        self.warnings = [*asked.warnings, *said]
        for text in said:
            self.findings.sections["configuration"].warn(text)

    def _kernel(self, config: Config) -> None:
        """Who would take the events in: a matter of speed alone."""
        with self.findings.looking_at("kernel") as found:
            lacks = unknown_of_config(config)
            self._fields["kernel"] = {"topics": {topic: {"lacks": keys} for topic, keys in lacks.items()}}
            lane = lane_of_environment()
            self._fields["kernel"] |= lane.fields()
            if lane.state == "used":
                found.ok(f"version {lane.version}, interface {lane.interface}, is used")
            elif lane.state == "refused":
                found.warn(f"the twin runs: {lane.why}")
                self.warnings.append(f"{lane.why}; the twin runs")
            else:
                found.ok(f"the twin runs, with the same releases: {lane.why.partition('; ')[0]}")
            for topic, keys in lacks.items():
                found.ok(f"{topic}: {words_of(keys) if keys else 'the kernel, where it is used'}")

    def _configuration(self) -> Config | None:
        with self.findings.looking_at("configuration") as found:
            config = load_config(self._path)
            found.ok(f"{self._path}: {many(len(config.metric), 'metric')} of {', '.join(config.topics)}")
            for text in (*lives(config.metrics), *(latencies(config) if config.has_kafka else ())):
                found.ok(text)
            return config
        return None

    def _key(self, config: Config) -> Key | None:
        path = config.privacy.key_file
        with self.findings.looking_at("key") as found:
            key = read_key(config)
            found.ok(f"{path}: fingerprint {key.fingerprint}")
            return key
        return None

    def _ledger(self, config: Config, closing: ExitStack) -> Ledger | None:
        with self.findings.looking_at("ledger") as found:
            ledger = closing.enter_context(Ledger.look(config.audit.url))
            if ledger.is_there:
                found.ok("it answers, and its schema is that of this version")
            else:
                found.ok("it is not there yet, and is made by the first worker or file run")
            self._fields["log"] = ledger.log_id if ledger.is_there else None
            refuse_unwritable(config.audit.url)
            return ledger
        return None

    def _logged(self, config: Config, ledger: Ledger, released: Released, before: int) -> None:
        """Whether the log has what workers take for logged, and the topic all that was in the log before."""
        with self.findings.looking_at("ledger") as found:
            lacks = released.passed - ledger.of(config.kafka.app).published_by_workers()
            if lacks > 0:
                raise LedgerError(behind(lacks, self._path))
            if released.passed:
                found.ok("it has all releases that the consumer group has passed over")
            if before > released.held:
                found.warn(text := ahead(before - released.held, settings_of(config)))
                self.warnings.append(text)

    def _agree(self, session: Session, partitions: dict[str, int]) -> Agreement | None:
        agreement, request, runs_files = None, None, not session.config.has_kafka
        with self.findings.looking_at("ledger") as found:
            if not runs_files and (text := of_file_runs(session)):
                runs_files = True
                found.warn(text)
                self.warnings.append(text)
            request = session.request(partitions, file_run=runs_files)
            agreement = session.ledger.check(request)
            new = len(agreement.charged)
            found.ok(f"{many(new, 'metric')} would be registered" if new else "all metrics are registered")
            for text in ended(session) if runs_files else ():
                found.ok(text)
            if not runs_files:
                refuse_absent(session, agreement.absent)
        with self.findings.looking_at("key") as found:
            session.check_key(request or session.request(partitions, file_run=runs_files))
            found.ok("it fits this audit log")
        return agreement

    def _guarantee(
        self,
        config: Config,
        agreement: Agreement | None,
        book: BudgetReport | None,
        persons: Mapping[str, str] | None,
    ) -> None:
        internal = [f"{config.kafka.app}.{name}" for name in ("contributions", "dead-letters", "*.changelog")]
        self._fields |= promises(config, agreement, book, persons) | {"internal": internal}
        if self._people is not None:
            add_people(self._fields, config, self._people)
        found = self.findings.sections["guarantee"]
        found.ok("of each metric, and of all of them", *in_words(self._fields))
        if agreement is None:
            found.leave("what would be charged needs the key, and a ledger that takes these metrics")

    def _workers(self, names: str) -> None:
        with self.findings.looking_at("workers") as found:
            said = diagnose(ask_workers(names))
            self._fields |= said
            found.ok("what they answered", *(f"  {line}" for line in told(said)))
            refuse_what_is_not_well(said)

    def refuse(self) -> None:
        """Make the command's status tell: what Kafka refuses comes last, for all else can be said without it.

        Raises:
            ShoalError: something was refused.
        """
        for error in sorted(self.findings.refused, key=lambda error: isinstance(error, KafkaError)):
            raise error


def of_file_runs(session: Session) -> str:
    """Warning on versions of the configuration that belong to file runs, where it has brokers; empty without any."""
    ledger, named = session.app_ledger, [session.config.id_of(metric) for metric in session.config.metrics]
    of_files = {VersionId.of(row) for row in ledger.versions()} - ledger.states_of_workers().keys()
    some = ", ".join(str(version) for version in named if version in of_files)
    return some and (
        f"{some} belongs to file runs, and was checked for them: workers need versions of their own (raise the "
        "version, and send the file into the topic with shoal produce)"
    )


def ended(session: Session) -> Iterator[str]:
    """What a run over a file may still do with versions of the configuration that ended with one."""
    named = {session.config.id_of(metric) for metric in session.config.metrics}
    for row in session.app_ledger.versions():
        if row.state == ENDED and VersionId.of(row) in named:
            yield (
                f"{VersionId.of(row)} ended {ended_when(row)} with the end of a file: the same "
                "input may be repeated, another needs a higher version"
            )


def ahead(more: int, settings: KafkaSettings) -> str:
    """Warning on an audit log that has `more` releases than the topic of releases holds."""
    return (
        f"it has {many(more, 'release')} that topic {settings.releases} lacks, as after topics were made anew: workers "
        "compute them again, and stop at the first that differs; restore the topics that belong to this log, or raise "
        "the versions of all metrics"
    )


def behind(lacks: int, config: Path) -> str:
    """What to do about an audit log that lacks so many releases which no worker will read again by itself."""
    return (
        f"it lacks {many(lacks, 'release')} that the consumer group has passed over, as after it was restored from an "
        f"older copy by other means; stop all workers, run shoal audit restore {config} FILE with a copy of it, which "
        "has workers read their releases again, and start them: what the log has is skipped"
    )
