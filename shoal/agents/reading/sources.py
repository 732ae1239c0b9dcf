"""Where releases are: a file, a topic, the audit log. Each hands out records with the place that an error names."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.agents.input.release_file import release_lines
from shoal.agents.reading.source import Found, Source, length_of
from shoal.models.config.addresses import addresses_of
from shoal.models.errors import InputError
from shoal.models.version import VersionId

if TYPE_CHECKING:  # a file is read without them
    from shoal.agents.kafka.settings import KafkaSettings
    from shoal.mechanisms.parts.metric import Metric
    from shoal.models.config.file import Config

DATABASES = ("sqlite:", "postgresql:", "postgres:", "postgresql+psycopg:")


def source_of(
    source: str | Path | None, *, brokers: str | None = None, topic: str | None = None, app: str | None = None
) -> Source:
    """The source that a caller names: a configuration (.toml), a database's URL or a file; or brokers and a topic.

    Raises:
        ShoalError: it cannot be used, or nothing or too much is named.
    """
    if source is None:
        if brokers is None or topic is None:
            raise InputError("nothing to read; name a file, a configuration or an audit log, or brokers and a topic")
        from shoal.agents.kafka.settings import KafkaSettings

        try:
            addresses_of(brokers)
        except ValueError as error:
            raise InputError(f"brokers: {error}") from None
        return topic_source(KafkaSettings(brokers=brokers, app="shoal-read"), topic)
    if brokers is not None or topic is not None:
        raise InputError(f"{source}: name either a source, or brokers and a topic, and not both")
    text = str(source)
    if text.startswith(DATABASES):
        return log_source(text, app)
    if app is not None:
        raise InputError(f"{source}: an app is told apart in an audit log alone; leave app out")
    return configured_source(text) if text.endswith(".toml") else file_source(text)


def file_source(path: str, config: str | None = None) -> Source:
    """A file of releases as JSON lines, plain or gzipped; `-` is stdin. A configuration says how long slots are.

    Raises:
        ConfigError: the configuration is refused.
    """
    loaded = None
    if config is not None:
        from shoal.models.config.file import load

        loaded = load(Path(config))
    metrics = _metrics(loaded)
    return Source(
        path,
        lambda: ((f"line {number}", line) for number, line in release_lines(path)),
        "" if loaded is None else loaded.kafka.app,
        _lengths(metrics),
        metrics,
    )


def topic_source(settings: "KafkaSettings", topic: str, config: "Config | None" = None) -> Source:
    """A topic of releases, from its beginning to its end as of the call: committed records, and no consumer group."""

    def records(of: str = topic) -> Iterator[Found]:
        from shoal.agents.reading.topics import past

        return past(settings, of)

    begun = None if config is None else partial(records, settings.activations)
    metrics = _metrics(config)
    app = "" if config is None else config.kafka.app
    return Source(f"topic {topic}", records, app, _lengths(metrics), metrics, settings, topic, begun, strict=False)


def configured_source(path: str) -> Source:
    """What a configuration's workers publish: its releases topic, or without Kafka what is in its audit log.

    Raises:
        ShoalError: it is refused, or there is no log.
    """
    from shoal.agents.kafka.settings import settings_of
    from shoal.models.config.file import load

    config = load(Path(path))
    if config.has_kafka:
        settings = settings_of(config)
        return topic_source(settings, settings.releases, config)
    log = log_source(config.audit.url, config.kafka.app)
    return Source(log.name, log.records, log.app, log.lengths, _metrics(config), begun=log.begun)


def log_source(url: str, app: str | None = None) -> Source:
    """The audit log; without an app, of the only one that there is.

    Raises:
        LedgerError: there is no log, it does not answer, its schema is another, or several apps are in it.
    """
    from shoal.agents.reading.log import AuditLog

    log = AuditLog(url, app)
    return Source(f"audit log, app {log.app}", log.records, log.app, log.lengths, begun=log.activations)


def _metrics(config: "Config | None") -> "dict[VersionId, Metric]":
    return {} if config is None else {config.id_of(each): each for each in config.metrics}


def _lengths(metrics: "Mapping[VersionId, Metric]") -> dict[VersionId, int]:
    return {version: length for version, each in metrics.items() if (length := length_of(each)) is not None}
