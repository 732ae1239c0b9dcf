"""The configuration file: what may be said in it, its defaults, and one clear line for what is refused.

`load` reads TOML, applies the environment, resolves relative paths from the file's folder and returns a frozen
`Config`. Numbers are decimals: 0.1 in the file is 1/10 here.
"""

import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, field_validator

from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.unit import PERSON, USER_SLOT, Unit
from shoal.models.config.addresses import HOST
from shoal.models.config.cell import CellSection
from shoal.models.config.clip import ClipSection
from shoal.models.config.complaints import complaint, zero_character
from shoal.models.config.decay import DecaySection
from shoal.models.config.kafka import KafkaSection, default_latency
from shoal.models.config.metric import MetricSection
from shoal.models.config.per_coordinate import overlap
from shoal.models.config.section import Exact, Section, epsilon_within_floats
from shoal.models.config.selection import SelectionSection
from shoal.models.config.unit import charge, parse_unit
from shoal.models.errors import ConfigError
from shoal.models.exact import exact_text
from shoal.models.version import VersionId

ENVIRONMENT = {
    "SHOAL_KAFKA_BROKERS": ("kafka", "brokers"),
    "SHOAL_AUDIT_URL": ("audit", "url"),
    "SHOAL_PRIVACY_KEY_FILE": ("privacy", "key_file"),
    "SHOAL_PRIVACY_EPSILON": ("privacy", "epsilon"),
}


class AuditSection(Section):
    """`[audit]`: the SQL log of every release and the ledger of what was charged."""

    url: str = Field("sqlite:///shoal.db", description="SQLAlchemy URL: sqlite:///FILE or postgresql+psycopg://...")


class PrivacySection(Section):
    """`[privacy]`: the secret key and the budget of the population."""

    key_file: Path = Field(Path("shoal.key"), description="made by `shoal key new`; mode 0600")
    epsilon: Exact = Field(..., gt=0, description="the population's budget; every metric charges it")
    delta: Exact = Field(Fraction(0), ge=0, lt=1, description="the budget's delta")
    unit: str | None = Field(
        None, description="what the ledger protects; none: the metrics' common unit, or user if they differ"
    )
    relation: Literal["values", "add-remove"] | None = Field(
        None, description="the relation that the ledger counts by; none: that of the metrics"
    )

    @field_validator("epsilon")
    @classmethod
    def _is_float(cls, value: Fraction) -> Fraction:
        return epsilon_within_floats(value)

    @field_validator("unit")
    @classmethod
    def _exists(cls, value: str | None) -> str | None:
        return value if value in (None, USER_SLOT) else parse_unit(value).name


class WebSection(Section):
    """`[web]`: health and metrics over HTTP; no port, no server."""

    port: int | None = Field(
        None, ge=1, le=65535, description="port of /healthz, /readyz and /metrics; none: no server"
    )
    host: str = Field("127.0.0.1", description="address to listen on")
    names: tuple[str, ...] = Field(
        (), description="names under which the port is reached; addresses, localhost and this host's name need no entry"
    )
    counters: bool = Field(
        False,
        description="with relation add-remove: true shows counts of events, refusals, backlogs and offsets, for those "
        "who may see the events; metrics of relation values always have them",
    )

    @field_validator("names")
    @classmethod
    def _has_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not HOST.fullmatch(name):
                raise ValueError(
                    f"{name!r} is not the name of a host; write it without port or path, as in board.example"
                )
        return value


class Config(Section):
    """The whole file."""

    kafka: KafkaSection = Field(default_factory=lambda: KafkaSection())
    audit: AuditSection = Field(default_factory=lambda: AuditSection())
    privacy: PrivacySection
    web: WebSection = Field(default_factory=lambda: WebSection())
    metric: tuple[MetricSection, ...] = Field(..., min_length=1)

    @property
    def has_kafka(self) -> bool:
        """Whether the file has a [kafka] section; `shoal run` needs none."""
        return "kafka" in self.model_fields_set

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copy, with other values of fields; what was computed of the old ones is left out."""
        copied = super().model_copy(update=update, deep=deep)
        for name in ("unit", "metrics"):
            copied.__dict__.pop(name, None)
        return copied

    @cached_property
    def unit(self) -> str:
        """The unit that the ledger protects; metrics that cost nothing do not decide it."""
        if self.privacy.unit not in (None, USER_SLOT):
            return self.privacy.unit
        units = [metric.unit for metric in self.metrics if metric.budget.epsilon]
        units = units or [metric.unit for metric in self.metrics]
        if self.privacy.unit == USER_SLOT:
            units = [unit for unit in units if unit.name == USER_SLOT]
        spelled = {unit: unit.spelled for unit in units}
        return spelled.popitem()[1] if len(spelled) == 1 else "user"

    @property
    def relation(self) -> str:
        """The relation that the ledger counts by."""
        return self.privacy.relation or self.metrics[0].hides.relation

    @cached_property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics as typed parts."""
        return tuple(section.parts for section in self.metric)

    def charge_of(self, metric: Metric) -> tuple[Fraction, Fraction]:
        """The most that a metric costs one unit of the ledger's: epsilon and delta.

        Raises:
            ConfigError: nothing bounds it.
        """
        unit, relations, apart = parse_unit(self.unit), (self.relation, metric.hides.relation), kind_of(metric).apart
        epsilon, delta = metric.budget.epsilon, metric.budget.delta
        try:
            return charge(unit, metric.unit, epsilon, delta, apart=apart, relations=relations)
        except ValueError as error:
            raise ConfigError(f'metric "{metric.name}": {error}') from None

    @property
    def protects_presence(self) -> bool:
        """Whether its metrics, which have one relation, protect that somebody is there."""
        return self.metrics[0].protects_presence

    @property
    def is_discreet(self) -> bool:
        """Whether a worker or a file run shows no more than what it publishes tells: not how many events there are."""
        return self.protects_presence and not self.web.counters

    @property
    def cadence(self) -> int:
        """The shortest tick, step or slot of all metrics, in microseconds; 0 with a release per contribution."""
        return min(0 if metric.length is None else metric.length.microseconds for metric in self.metrics)

    @property
    def latency(self) -> int:
        """Microseconds within which a release is to be readable after its tick has ended."""
        if self.kafka.latency is not None:
            return self.kafka.latency
        return default_latency(self.cadence)

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(metric.source.topic for metric in self.metrics))

    def sections_of(self, topic: str) -> tuple[MetricSection, ...]:
        """The metrics of a topic as the file has them."""
        return tuple(section for section in self.metric if section.topic == topic)

    def metrics_of(self, topic: str) -> tuple[Metric, ...]:
        """The metrics of a topic."""
        return tuple(section.parts for section in self.sections_of(topic))

    def id_of(self, metric: Metric) -> VersionId:
        """The name under which the app registers a metric."""
        return VersionId(self.kafka.app, metric.name, metric.version)

    def in_epochs(self, epochs: Mapping[VersionId, int]) -> "Config":
        """Copy of the configuration with the clock epochs of registered metric versions, which the ledger knows."""
        metrics = tuple(
            metric.in_epoch(epochs.get(self.id_of(metric.parts), metric.parts.source.epoch)) for metric in self.metric
        )
        return self.model_copy(update={"metric": metrics})


# The tables of the file by name, and those inside a metric.
MODELS: dict[str, type[Section]] = {
    "kafka": KafkaSection, "audit": AuditSection, "privacy": PrivacySection, "web": WebSection,
    "metric": MetricSection, "decay": DecaySection, "cell": CellSection, "selection": SelectionSection,
    "clip": ClipSection,
}  # fmt: skip


def load(path: Path) -> Config:
    """Read, complete and check a configuration file.

    Raises:
        ConfigError: it cannot be read, or says something impossible; one line says what and what to do.
    """
    path = Path(path)
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); name an existing TOML file") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not valid TOML: it is not UTF-8 text; save it as UTF-8") from None
    return read(text, path)


def read(text: str, path: Path) -> Config:
    """Complete and check the text of a configuration file, whether or not it is written yet.

    Raises:
        ConfigError: it says something impossible; one line says what and what to do.
    """
    try:
        tree: dict[str, Any] = tomllib.loads(text, parse_float=Decimal)
        zero = zero_character(tree, MODELS)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise ConfigError(
            f"{path}: lists or tables are nested hundreds deep, which no key needs; remove them"
        ) from None
    except (ValueError, ArithmeticError):  # of what turns digits into numbers
        raise ConfigError(f"{path}: not valid TOML: a number has too many digits; write a smaller one") from None
    for variable, (section, key) in ENVIRONMENT.items():
        if variable in os.environ and isinstance(tree.setdefault(section, {}), dict):
            tree[section][key] = os.environ[variable]
    if zero is not None:
        raise ConfigError(f"{path}: {zero}")
    try:
        config = Config.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(f"{path}: {complaint(error, tree, MODELS)}") from None
    for problem in _cross_checks(config):
        raise ConfigError(f"{path}: {problem}")
    return _resolve(config, path.resolve().parent)


def _cross_checks(config: Config) -> Iterator[str]:
    """Refuse what no single table can see."""
    if (
        config.privacy.unit == USER_SLOT
        and len({metric.unit.period for metric in config.metrics if metric.unit.name == USER_SLOT}) != 1
    ):
        yield f"[privacy] unit {USER_SLOT} needs metrics per slot, all of one length; write user-hour, user-day or user"
    if len(relations := {metric.hides.relation for metric in config.metrics}) > 1:
        yield (
            f"metrics have relations {' and '.join(sorted(relations))}; give each relation a file, an app and an audit "
            "log of its own"
        )
    seen: set[str] = set()
    for metric in config.metrics:
        if metric.name in seen:
            yield f'metric "{metric.name}" stands twice; names are unique'
        seen.add(metric.name)
        try:
            config.charge_of(metric)
        except ConfigError as error:
            yield _differing_units(config) or str(error)
    yield from _wrong_compacted(config)
    for topic in config.topics:
        metrics = config.metrics_of(topic)
        users = sorted({metric.source.user for metric in metrics})
        if len(users) > 1:
            yield f"topic {topic!r}: users are {' and '.join(users)}; a topic is partitioned by one user field"
        values = {path for metric in metrics for path in metric.protected}
        patterns = {path for metric in metrics for path in metric.pattern.values()}
        for value in sorted(values):
            for pattern in sorted(patterns):
                if overlap(value, pattern):
                    yield (
                        f"topic {topic!r}: field {value!r} is a value and {pattern!r} is pattern (user, time or group, "
                        "public); a field is one or the other"
                    )


def _wrong_compacted(config: Config) -> Iterator[str]:
    """Refuse a topic of `compacted` that no metric reads, or of whose units one would delete another's records."""
    for topic in config.kafka.compacted:
        metrics = config.metrics_of(topic)
        if not metrics:
            yield f"[kafka] compacted: no metric reads topic {topic!r}; remove it, or correct its name"
        for metric in metrics:
            if metric.protects_presence and metric.unit != PERSON:
                yield (
                    f'[kafka] compacted: metric "{metric.name}" of topic {topic!r} protects the presence of one '
                    f"{metric.unit.words()}, and a person's later record deletes an earlier one, which may be "
                    'in another; set unit = "user" there, or remove the topic from compacted'
                )


def _differing_units(config: Config) -> str | None:
    """The remedy where metrics have several units and nothing says by which the ledger counts."""
    costing = [metric for metric in config.metrics if metric.budget.epsilon]
    longest = sorted(
        {metric.unit.spelled: metric.unit for metric in costing}.items(),
        key=lambda named: -_length(named[1]),
    )
    if config.privacy.unit is not None or len(longest) == 1:
        return None
    for name, _ in longest:
        by_unit = config.model_copy(update={"privacy": config.privacy.model_copy(update={"unit": name})})
        try:
            charges = {metric.name: by_unit.charge_of(metric)[0] / metric.budget.epsilon for metric in costing}
        except ConfigError:
            continue
        units = ", ".join(f'"{metric.name}" a {metric.unit.words()}' for metric in costing)
        more = [f'"{metric}" {exact_text(times)} times its epsilon' for metric, times in charges.items() if times > 1]
        charged = f" (which charges {' and '.join(more)})" if more else ""
        return (
            f"the metrics protect different units: {units}; say by which of them the ledger counts, with [privacy] "
            f'unit = "{name}"{charged}; a ledger that exists keeps its own unit'
        )
    return None


def _length(unit: Unit) -> float:
    """The length of a unit's period: endless for a person, none for an event."""
    return 0.0 if unit.is_event else float(unit.period or math.inf)


def _resolve(config: Config, folder: Path) -> Config:
    """The path, resolved from the file's folder if it is relative."""
    url = config.audit.url
    if url.startswith("sqlite:///") and url != "sqlite:///:memory:":
        url = f"sqlite:///{folder / url.removeprefix('sqlite:///')}"
    paths = {
        field: folder / value
        for field in ("sasl_password_file", "ssl_cafile", "ssl_certfile", "ssl_keyfile")
        if (value := getattr(config.kafka, field)) is not None
    }
    sections: dict[str, Section] = {
        "audit": config.audit.model_copy(update={"url": url}),
        "privacy": config.privacy.model_copy(update={"key_file": folder / config.privacy.key_file}),
    }
    if config.has_kafka:
        sections["kafka"] = config.kafka.model_copy(update=paths)
    return config.model_copy(update=sections)
