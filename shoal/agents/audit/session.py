"""A command's session: configuration, key and ledger, opened in that order and checked against one another."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

from shoal.agents.audit import key_file
from shoal.agents.audit.app_ledger import AppLedger
from shoal.agents.audit.database import NotMigrated, may_have_log
from shoal.agents.audit.key_file import Key, NoiseUse
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.requests import Agreement, Registration, Request
from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.parts.per import Hexagons
from shoal.models.config.file import Config, load
from shoal.models.config.metric import MetricSection
from shoal.models.digests import parameters_digest
from shoal.models.errors import ConfigError, KeyFileError, LedgerError, MissingKey
from shoal.models.extras import hexagons
from shoal.models.parameters import clock_in
from shoal.models.version import NoiseName, VersionId
from shoal.stream.parameters import parameters_of


@dataclass(frozen=True)
class Session:
    """Configuration, key and ledger of a command that may publish."""

    path: Path
    config: Config
    key: Key
    ledger: Ledger

    @property
    def app_ledger(self) -> AppLedger:
        """The part of the ledger that is the configuration's app."""
        return self.ledger.of(self.config.kafka.app)

    def register(
        self, *, partitions: Mapping[str, int] | None = None, file_run: bool = False, topic: str | None = None
    ) -> Agreement:
        """Agree with the ledger on every metric of the configuration, and bind the key to this log.

        A worker gives the `partitions` of its topics, a file run the `topic` that it reads: it registers no metric of
        another one.

        Raises:
            LedgerError: something differs from what was agreed, or the budget does not suffice.
            KeyFileError: the key belongs to another log, or has met a stream that this log does not know.
        """
        # Looked at, then bound, then charged: what is refused leaves neither a binding nor a charge.
        request = self.request(partitions, file_run=file_run, topic=topic)
        self.ledger.check(request)
        key, log_id, names = self.config.privacy.key_file, self.ledger.log_id, names_of(request)
        key_file.announce(key, log_id, request.app, request.owner, names, self._logged)
        agreement = self.ledger.register(request)
        key_file.bind(key, log_id, names, self._logged)
        return agreement

    def check(
        self, *, partitions: Mapping[str, int] | None = None, file_run: bool = False, topic: str | None = None
    ) -> Agreement:
        """What `register` would do; nothing is written."""
        request = self.request(partitions, file_run=file_run, topic=topic)
        agreement = self.ledger.check(request)
        self.check_key(request)
        return agreement

    def check_key(self, request: Request) -> None:
        """Refuse a key that belongs to another log, or whose noise has met more than this log knows."""
        key_file.compare(self.config.privacy.key_file, self.ledger.log_id, request.app, names_of(request), self._logged)

    def remember(self, releases: Mapping[VersionId, int]) -> None:
        """Remember beside the key how many releases of its versions a file run has put into the log."""
        names = {each.id: NoiseName(*each.id[1:], each.digest) for each in self._registrations()}
        counts = {names[version]: count for version, count in releases.items()}
        key_file.remember(self.config.privacy.key_file, self.ledger.log_id, counts)

    def _logged(self) -> dict[NoiseName, NoiseUse]:
        return self.ledger.noise(self.key.fingerprint)

    def _registrations(self, topic: str | None = None) -> list[Registration]:
        """The metrics of the configuration, or of one topic, as the ledger knows them."""
        metrics = self.config.metric if topic is None else self.config.sections_of(topic)
        return [registration_of(self.config, metric) for metric in metrics]

    def request(
        self, partitions: Mapping[str, int] | None, *, file_run: bool = False, topic: str | None = None
    ) -> Request:
        """Registration request for the metrics of the configuration, or for those of one topic."""
        for metric in self.config.metrics:
            if isinstance(metric.place, Hexagons):
                hexagons()  # what finds cells must be there before anything is charged
        return Request(
            app=self.config.kafka.app,
            registrations=self._registrations(topic),
            budget_epsilon=self.config.privacy.epsilon,
            budget_delta=self.config.privacy.delta,
            key_fingerprint=self.key.fingerprint,
            partitions=partitions or {},
            unit=self.config.unit,
            counts_by=self.config.relation,
            file_run=file_run,
        )


def names_of(request: Request) -> list[NoiseName]:
    """Noise names of the versions in a request."""
    return [NoiseName(each.metric, each.version, each.digest) for each in request.registrations]


def registration_of(config: Config, section: MetricSection) -> Registration:
    """A metric as the ledger knows it: it costs its epsilon once, as often as the ledger's unit touches its own.

    Raises:
        ConfigError: nothing bounds how often that is.
    """
    metric = section.parts
    charge_epsilon, charge_delta = config.charge_of(metric)
    parameters = parameters_of(config, metric)
    return Registration(
        app=config.kafka.app,
        metric=metric.name,
        version=metric.version,
        digest=parameters_digest(parameters),
        parameters=parameters,
        epsilon=metric.budget.epsilon,
        delta=metric.budget.delta,
        unit=metric.unit.name,
        relation=metric.hides.relation,
        charge_epsilon=charge_epsilon,
        charge_delta=charge_delta,
    )


def load_config(path: Path) -> Config:
    """Read a configuration whose every mechanism can be built.

    Raises:
        ConfigError: it says something impossible.
    """
    config = load(path)
    for metric in config.metrics:
        try:
            statistic_of(metric)
        except ValueError as error:
            raise ConfigError(f'{path}: metric "{metric.name}": {error}') from None
    return config


@contextmanager
def open_session(path: Path, config: Config | None = None) -> Iterator[Session]:
    """Open all three, `config` being that of `path` where it is loaded already; the ledger is closed afterwards."""
    if config is None:
        config = load_config(path)
    key = read_key(config)
    with Ledger.open(config.audit.url) as ledger:
        yield Session(path, config.in_epochs(epochs_of(ledger, config)), key, ledger)


def epochs_of(ledger: Ledger, config: Config) -> dict[VersionId, int]:
    """Clock epoch of each metric version: restarts of its topic's clocks before it was registered, or until now."""
    registered = ledger.of(config.kafka.app)
    epochs = registered.epochs()
    now = {config.id_of(one): epochs.get(one.source.topic, 0) for one in config.metrics}
    return now | {VersionId.of(row): clock_in(orjson.loads(row.parameters))[1] for row in registered.versions()}


def registered_epochs(config: Config) -> dict[VersionId, int]:
    """The same for a command that can do without a ledger: empty if there is none yet, or none that answers.

    Raises:
        NotMigrated: there is one, of another version of shoal.
    """
    url = config.audit.url
    if not may_have_log(url):
        return {}
    try:
        with Ledger.open(url, migrate=False) as ledger:
            return epochs_of(ledger, config)
    except NotMigrated:
        raise
    except LedgerError:
        return {}


def read_key(config: Config) -> Key:
    """The key of a configuration.

    Raises:
        KeyFileError: it cannot be used. Where there is none, the log is asked whether it was another one that is lost:
            what is registered goes on with its own key alone.
    """
    path = config.privacy.key_file
    try:
        return key_file.read(path)
    except MissingKey:
        lost = _registered_keys(config)
        if not lost:
            raise
    raise KeyFileError(
        f"{path} does not exist; put the key {', '.join(lost)} back, with which metrics of this configuration are "
        "registered, and its .used: a new key cannot go on with them (docs/guides/lose-a-key.md)"
    )


def _registered_keys(config: Config) -> list[str]:
    """The fingerprints with which metric versions of the configuration are registered, as far as there is a log."""
    url, named = config.audit.url, {config.id_of(metric) for metric in config.metrics}
    if not may_have_log(url):
        return []
    try:
        with Ledger.open(url, migrate=False) as ledger:
            rows = ledger.of(config.kafka.app).versions()
    except LedgerError:  # which is said where the log is looked at
        return []
    return sorted({row.key_fingerprint for row in rows if VersionId.of(row) in named})


def refuse_absent(session: Session, absent: Sequence[VersionId]) -> None:
    """Refuse a configuration of workers that lacks an active version of theirs.

    Raises:
        LedgerError: it lacks one. Retiring is offered unless the ledger shows that the configuration is an older one.
    """
    if not absent:
        return
    missing = absent[0]
    since = {VersionId.of(row): row.registered for row in session.app_ledger.versions()}
    here = [since.get(session.config.id_of(metric)) for metric in session.config.metrics]
    if all(each is not None and each < since[missing] for each in here):
        raise LedgerError(
            f"{session.path}: {missing} is active in the ledger and missing here; it was registered after all that is "
            "here, so a newer configuration is in use: use that one"
        )
    raise LedgerError(
        f"{session.path}: {missing} is active in the ledger and missing here; add it, or retire it for good: shoal "
        f"budget {session.path} --retire {missing.metric}"
    )


def former_topics(partitions: Mapping[str, int], read: Iterable[str]) -> dict[str, int]:
    """Topics that workers of the app have read once and read no more, all their metrics being retired: partitions."""
    return {topic: count for topic, count in partitions.items() if topic not in set(read)}
