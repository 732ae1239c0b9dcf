"""The configuration file: what may be said in it, its defaults, and one clear line for what is refused.

`load` reads TOML, applies the environment, resolves relative paths from the file's folder and returns a frozen
`Config`. Numbers are decimals: 0.1 in the file is 1/10 here.
"""

import difflib
import os
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    field_validator,
    model_validator,
)

from shoal.models import coordinates
from shoal.models.coordinates import Range, for_each, overlap
from shoal.models.durations import parse_duration
from shoal.models.errors import ConfigError
from shoal.models.exact import exact_number

NAME = r"[a-z0-9_-]+"
ENVIRONMENT = {
    "SHOAL_KAFKA_BROKERS": ("kafka", "brokers"),
    "SHOAL_AUDIT_URL": ("audit", "url"),
    "SHOAL_PRIVACY_KEY_FILE": ("privacy", "key_file"),
    "SHOAL_PRIVACY_EPSILON": ("privacy", "epsilon"),
}
NOT_BUILT = {
    "algorithm": ("patent",),
    "statistic": ("sum", "count", "mean+variance", "distribution"),
}
ALGORITHMS = ("sharp", "naive", "wishful", "single-tree", "multi-tree", "full")
WITH_PRIOR = ("wishful", "single-tree", "multi-tree")  # they need one; the others make their own, or none
ON_BLOCKS = (*WITH_PRIOR, "full")
RESERVED = ("decay", "step", "slot", "cell", "max_cells", "max_slots")


def _duration(value: Any) -> int:
    if not isinstance(value, str):
        raise ValueError("must be a duration such as 30s, 5m, 1h or 7d, in quotes")
    return parse_duration(value)


Exact = Annotated[Fraction, BeforeValidator(exact_number)]
Duration = Annotated[int, BeforeValidator(_duration)]
# Keys with one value, or a list with one for each coordinate.
Fields = Annotated[str | tuple[str, ...], PlainValidator(coordinates.field_names)]
Ranges = Annotated[Range | tuple[Range, ...], PlainValidator(coordinates.ranges)]
Numbers = Annotated[Fraction | tuple[Fraction, ...] | None, PlainValidator(coordinates.numbers)]
PositiveNumbers = Annotated[Fraction | tuple[Fraction, ...] | None, PlainValidator(coordinates.positive_numbers)]
DAY = 86_400_000_000
UNKNOWN_USERS = 1000  # where a release per contribution needs some horizon


class Section(BaseModel):
    """A table of the file: unknown keys are errors, values are frozen, an error never repeats its input."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, hide_input_in_errors=True, arbitrary_types_allowed=True, strict=False
    )


class KafkaSection(Section):
    """`[kafka]`: brokers, names and how events are partitioned."""

    brokers: str = Field("localhost:9092", description="bootstrap servers, comma-separated")
    app: str = Field("shoal", pattern=r"^[a-zA-Z0-9._-]+$", description="names the consumer group and the topics")
    partitioner: Literal["murmur2", "crc32"] = Field("murmur2", description="how producers map a user to a partition")
    partitions: int = Field(8, ge=1, le=1024, description="of contributions and releases; frozen once used")
    replication: int = Field(-1, ge=-1, description="of the topics shoal creates; -1: the broker's default")
    idle_after: Duration = Field(30_000_000, description="a source partition silent this long stops holding up ticks")
    dead_letters: bool = Field(True, description="false: refused records are only counted")
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="how clients speak to the brokers"
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field("PLAIN", description="SASL mechanism")
    sasl_username: str | None = Field(None, description="SASL user name")
    sasl_password_file: Path | None = Field(None, description="file with the SASL password")
    ssl_cafile: Path | None = Field(None, description="CA certificates")
    ssl_certfile: Path | None = Field(None, description="client certificate")
    ssl_keyfile: Path | None = Field(None, description="client certificate's key")

    @field_validator("idle_after")
    @classmethod
    def _positive(cls, value: int) -> int:
        if value <= 0:
            raise ValueError("must be longer than 0s")
        return value


class AuditSection(Section):
    """`[audit]`: the SQL log of every release and the ledger of what was charged."""

    url: str = Field("sqlite:///shoal.db", description="SQLAlchemy URL: sqlite:///FILE or postgresql+psycopg://...")


class PrivacySection(Section):
    """`[privacy]`: the secret key and the budget of the population."""

    key_file: Path = Field(Path("shoal.key"), description="made by `shoal key new`; mode 0600")
    epsilon: Exact = Field(..., gt=0, description="the population's budget; every metric charges it")
    delta: Exact = Field(Fraction(0), ge=0, lt=1, description="the budget's delta")
    unit: Literal["user"] = Field("user", description="whom the ledger protects")


class WebSection(Section):
    """`[web]`: health and metrics over HTTP; no port, no server."""

    port: int | None = Field(None, ge=1, le=65535, description="port of /health and /metrics; none: no server")
    host: str = Field("127.0.0.1", description="address to listen on")


class MetricSection(Section):
    """`[[metric]]`: one private statistic of one topic."""

    name: str = Field(..., pattern=f"^{NAME}$", description="names the statistic in releases and in the ledger")
    topic: str = Field(..., pattern=r"^[a-zA-Z0-9._-]+$", description="the topic of events")
    user: str = Field(..., min_length=1, description="field with the user id; dots reach into nested objects")
    value: Fields = Field(..., description="field with the value; a list: fields with its coordinates, 2 to 8")
    time: str | None = Field(None, min_length=1, description="field with the event time; none: the record's timestamp")
    group: str | None = Field(None, min_length=1, description="field that splits the statistic into groups")
    statistic: str = Field(..., description="what is released: mean")
    range: Ranges = Field(..., description="values are clipped to it; public; one for each coordinate")
    epsilon: Exact = Field(..., gt=0, description="the privacy loss of everything one unit ever meets in this metric")
    delta: Exact = Field(Fraction(0), ge=0, description="0: pure differential privacy")
    max_contributions: int = Field(..., ge=1, le=2**20, description="m: samples of a unit (and group) that count")
    users: int | None = Field(
        None,
        ge=1,
        le=2**40,
        description="expected users; tunes accuracy, never the guarantee; only sharp can do without",
    )
    algorithm: str = Field("sharp", description="sharp, naive, wishful, single-tree, multi-tree or full")
    every: Duration | Literal["contribution"] = Field(..., description="release cadence in event time")
    version: int = Field(1, ge=1, description="raise it to change anything that affects the guarantee")
    unit: str = Field("user", description="user: all of a person's values, for ever")
    relation: str = Field("values", description="neighbouring streams differ in one unit's values; pattern is public")
    prior: Numbers = Field(
        None, description="centre of clipping, in the range; must itself be private: a constant or a charged release"
    )
    sigma: PositiveNumbers = Field(
        None,
        description="above 0: values are sigma-subgaussian, and the range is that of their mean; none: of the values",
    )
    horizon: Duration | None = Field(
        None, gt=0, description="how long the stream is expected to last; tunes sharp, never the guarantee"
    )
    failure: Exact = Field(Fraction(1, 1000), gt=0, lt=1, description="probability that an accuracy bound fails")
    max_groups_per_user: int = Field(1, ge=1, le=2**20, description="G: further groups of a user are left out")
    lateness: Duration = Field(0, description="how far behind its partition's progress an event keeps its own time")
    late: Literal["fold", "drop"] = Field("fold", description="older events: fold into the open tick, or drop")
    max_ahead: Duration = Field(30 * DAY, description="an event further in the future is a dead letter")
    max_gap: int = Field(1_000_000, ge=1, description="steps of silence after which a group rests; unused by means")
    grid: int = Field(
        2**20,
        ge=2,
        le=2**32,
        description="steps over the range; values are rounded to them; below 2**29 for sharp from 64 contributions on",
    )
    clamp: bool | None = Field(None, description="clamp the published estimate; none: sharp does, the others do not")

    @field_validator("every")
    @classmethod
    def _cadence(cls, value: int | str) -> int | str:
        if isinstance(value, int) and not 0 < value <= 36_500 * DAY:
            raise ValueError("must be longer than 0s and at most 36500d")
        return value

    @field_validator("algorithm", "statistic")
    @classmethod
    def _built(cls, value: str, info: Any) -> str:
        built = {"algorithm": ALGORITHMS, "statistic": ("mean",)}[info.field_name]
        if value in built:
            return value
        state = "is not built yet" if value in NOT_BUILT[info.field_name] else "does not exist"
        raise ValueError(f"{value!r} {state}; this version has: {', '.join(built)}")

    @model_validator(mode="after")
    def _guarantee(self) -> "MetricSection":
        if self.relation != "values":
            raise ValueError(f"relation {self.relation!r} is not built; this version has: values")
        if self.unit != "user":
            raise ValueError(f"unit {self.unit!r} is not built yet for means; this version has: user")
        if self.delta != 0:
            raise ValueError(f"delta must be 0: {self.algorithm} is pure differential privacy")
        return self

    @model_validator(mode="after")
    def _assumptions(self) -> "MetricSection":
        if self.algorithm in WITH_PRIOR and self.prior is None:
            raise ValueError(f"prior is missing: {self.algorithm} clips around it; add it, or use full")
        if self.algorithm not in WITH_PRIOR and self.prior is not None:
            raise ValueError(f"prior is not for {self.algorithm}; remove it, or use one of: {', '.join(WITH_PRIOR)}")
        for prior, (low, high), _ in zip(self.priors, self.ranges, self.sigmas, strict=True):
            if prior is not None and not low <= prior <= high:
                raise ValueError("prior lies outside the range; choose a number inside it")
        if self.sigma is not None and self.algorithm not in ON_BLOCKS:
            raise ValueError(f"sigma is for algorithms on blocks; {self.algorithm} needs a range of the values")
        return self

    @model_validator(mode="after")
    def _tuning(self) -> "MetricSection":
        if self.algorithm != "sharp" and self.users is None:
            raise ValueError(f"users is missing: the trees of {self.algorithm} are made for so many; add it")
        if self.horizon is not None and self.algorithm != "sharp":
            raise ValueError(f"horizon tunes sharp; {self.algorithm} has no use for it; remove it")
        if self.horizon is not None and self.every == "contribution":
            raise ValueError(
                "horizon needs a cadence in event time; a release per contribution goes by users; remove it"
            )
        return self

    @property
    def clamps(self) -> bool:
        """Whether the published estimate is clamped."""
        return self.algorithm == "sharp" if self.clamp is None else self.clamp

    @property
    def expected_releases(self) -> int | None:
        """Of a group, as far as the configuration says."""
        if isinstance(self.every, int):
            return None if self.horizon is None else max(1, self.horizon // self.every)
        return (self.users or UNKNOWN_USERS) * self.max_contributions

    @property
    def values(self) -> tuple[str, ...]:
        """The fields with the coordinates."""
        return (self.value,) if isinstance(self.value, str) else self.value

    @property
    def ranges(self) -> tuple[Range, ...]:
        """Of each coordinate."""
        return for_each("range", self.range, len(self.values), is_list=isinstance(self.range[0], tuple))

    @property
    def priors(self) -> tuple[Fraction | None, ...]:
        """Of each coordinate."""
        return self._of_each("prior")

    @property
    def sigmas(self) -> tuple[Fraction | None, ...]:
        """Of each coordinate."""
        return self._of_each("sigma")

    def _of_each(self, key: str) -> tuple[Fraction | None, ...]:
        value, count = getattr(self, key), len(self.values)
        return (None,) * count if value is None else for_each(key, value, count, is_list=isinstance(value, tuple))

    @property
    def record_prefix(self) -> str:
        """What a release's record key starts with."""
        return f"{self.name}|"

    def paths(self) -> dict[str, str]:
        """Role -> field of the event that is pattern."""
        roles = {"user": self.user, "time": self.time, "group": self.group}
        return {role: path for role, path in roles.items() if path is not None}


class Config(Section):
    """The whole file."""

    kafka: KafkaSection = Field(default_factory=lambda: KafkaSection())
    audit: AuditSection = Field(default_factory=lambda: AuditSection())
    privacy: PrivacySection
    web: WebSection = Field(default_factory=lambda: WebSection())
    metric: tuple[MetricSection, ...] = Field(..., min_length=1)

    @property
    def has_kafka(self) -> bool:
        """Whether the file speaks of Kafka at all; `shoal run` needs no [kafka]."""
        return "kafka" in self.model_fields_set

    @property
    def topics(self) -> tuple[str, ...]:
        """Source topics, in order of first mention."""
        return tuple(dict.fromkeys(metric.topic for metric in self.metric))

    def metrics_of(self, topic: str) -> tuple[MetricSection, ...]:
        """The metrics fed by a topic."""
        return tuple(metric for metric in self.metric if metric.topic == topic)


def load(path: Path) -> Config:
    """Read, complete and check a configuration file.

    Raises:
        ConfigError: it cannot be read, or says something impossible; one line says what and what to do.
    """
    path = Path(path)
    try:
        tree: dict[str, Any] = tomllib.loads(path.read_text("utf-8"), parse_float=Decimal)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}); name an existing TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {str(error).splitlines()[0]}") from None
    for variable, (section, key) in ENVIRONMENT.items():
        if variable in os.environ:
            tree.setdefault(section, {})[key] = os.environ[variable]
    try:
        config = Config.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(f"{path}: {_first_line(error, tree)}") from None
    for problem in _cross_checks(config):
        raise ConfigError(f"{path}: {problem}")
    return _resolve(config, path.resolve().parent)


def _first_line(error: ValidationError, tree: dict[str, Any]) -> str:
    """The first complaint, with its place and a remedy; never the value itself."""
    complaints = error.errors(include_input=False, include_url=False)
    # A misspelt key is both unknown and missing: the unknown one says more.
    first = min(complaints, key=lambda complaint: complaint["type"] != "extra_forbidden")
    where, model = _place(first["loc"], tree)
    key = str(first["loc"][-1])
    if first["type"] == "extra_forbidden":
        if key in RESERVED and model is MetricSection:
            return f"{where}: {key} belongs to statistics that are not built yet; remove it"
        near = difflib.get_close_matches(key, list(model.model_fields), n=1, cutoff=0.0)
        return f"{where}: unknown key {key!r}; did you mean {near[0]!r}?"
    if first["type"] == "missing":
        return f"{where}: {key} is missing; add it"
    names = [str(part) for part in first["loc"] if isinstance(part, str) and part in _all_keys()]
    name = names[-1] + " " if names and names[-1] not in ("metric", "kafka", "audit", "privacy", "web") else ""
    text = first["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    return f"{where}: {name}{text}"


def _place(loc: tuple[int | str, ...], tree: dict[str, Any]) -> tuple[str, type[Section]]:
    sections: dict[Any, type[Section]] = {
        "kafka": KafkaSection, "audit": AuditSection, "privacy": PrivacySection, "web": WebSection,
    }  # fmt: skip
    if len(loc) > 1 and loc[0] == "metric" and isinstance(loc[1], int):
        name = tree["metric"][loc[1]].get("name", f"number {loc[1] + 1}")
        return f'metric "{name}"', MetricSection
    if len(loc) > 1 and loc[0] in sections:
        return f"[{loc[0]}]", sections[loc[0]]
    return "the file", Config


def _all_keys() -> set[str]:
    return {key for model in Section.__subclasses__() for key in model.model_fields}


def _cross_checks(config: Config) -> Iterator[str]:
    """What no single table can see."""
    seen: set[str] = set()
    for metric in config.metric:
        if metric.name in seen:
            yield f'metric "{metric.name}" stands twice; names are unique'
        seen.add(metric.name)
    for topic in config.topics:
        metrics = config.metrics_of(topic)
        users = sorted({metric.user for metric in metrics})
        if len(users) > 1:
            yield f"topic {topic!r}: users are {' and '.join(users)}; a topic is partitioned by one user field"
        values = {path for metric in metrics for path in metric.values}
        patterns = {path for metric in metrics for path in metric.paths().values()}
        for value in sorted(values):
            for pattern in sorted(patterns):
                if overlap(value, pattern):
                    yield (
                        f"topic {topic!r}: field {value!r} is a value and {pattern!r} is pattern (user, time or group, "
                        "public); a field is one or the other"
                    )


def _resolve(config: Config, folder: Path) -> Config:
    """Relative paths start at the file's folder."""
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
