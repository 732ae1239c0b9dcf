"""Tables of the audit log: what was agreed (versions, budget, partition counts) and what was published.

Nothing here is secret: every column is a function of configuration, of pattern or of charged outputs. Amounts of
privacy are exact text, times are ISO 8601 text in UTC, so that both databases keep and compare the same thing.
"""

from fractions import Fraction
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from shoal.models.exact import exact_text

ACTIVE, RETIRED, ENDED = "active", "retired", "ended"
FILE, WORKERS = "file", "workers"
CLOCK, LOSS = "clock", "loss"

NAMES = {
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(referred_table_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
}


class Exact(sa.TypeDecorator[Fraction]):
    """A fraction kept as exact text; a float would round what is charged."""

    impl = sa.String
    cache_ok = True

    def process_bind_param(self, value: Fraction | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else exact_text(value)

    def process_result_value(self, value: Any | None, dialect: sa.Dialect) -> Fraction | None:
        return None if value is None else Fraction(value)


def escape(label: str) -> str:
    r"""Escape NUL, which JSON strings may hold and PostgreSQL's may not, as \0, and a backslash as \\.

    >>> print(escape("a\\b\0c"), unescape(escape("a\\b\0c")) == "a\\b\0c")
    a\\b\0c True
    """
    return label.replace("\\", "\\\\").replace("\0", "\\0")


def unescape(text: str) -> str:
    """The text that `escape` was given."""
    return "\\".join(part.replace("\\0", "\0") for part in text.split("\\\\"))


class Label(sa.TypeDecorator[str]):
    """Text out of events, escaped."""

    impl = sa.String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else escape(value)

    def process_result_value(self, value: Any | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else unescape(value)


class Table(DeclarativeBase):
    """Base of all tables; constraints are named so that a migration can drop them."""

    metadata = sa.MetaData(naming_convention=NAMES)
    type_annotation_map = {Fraction: Exact, bytes: sa.LargeBinary}


class Log(Table):
    """The log itself, in one row, with the random id to which a key file is bound."""

    __tablename__ = "log"
    __table_args__ = (sa.CheckConstraint("one = 1", name="one"),)

    one: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    id: Mapped[str]
    created: Mapped[str]


class Budget(Table):
    """The budget of the population, in one row, from the first registration on."""

    __tablename__ = "ledger_budget"
    __table_args__ = (sa.CheckConstraint("one = 1", name="one"),)

    one: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    epsilon: Mapped[Fraction]
    delta: Mapped[Fraction]
    unit: Mapped[str]
    relation: Mapped[str]


class BudgetChange(Table):
    """A new budget and when it was set; the last row equals the budget."""

    __tablename__ = "budget_change"

    number: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[str]
    epsilon: Mapped[Fraction]
    delta: Mapped[Fraction]


class MetricVersion(Table):
    """One version of one metric of one app: its parameters, its key and what it is charged, once and for good."""

    __tablename__ = "metric_version"
    __table_args__ = (sa.CheckConstraint("state IN ('active', 'retired', 'ended')", name="state"),)

    app: Mapped[str] = mapped_column(primary_key=True)
    metric: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    digest: Mapped[str]
    parameters: Mapped[str] = mapped_column(sa.Text)
    key_fingerprint: Mapped[str]
    epsilon: Mapped[Fraction]
    delta: Mapped[Fraction]
    unit: Mapped[str]
    relation: Mapped[str]
    charge_epsilon: Mapped[Fraction]
    charge_delta: Mapped[Fraction]
    state: Mapped[str]
    ended_at: Mapped[str | None]
    input_digest: Mapped[str | None]
    registered: Mapped[str]
    added: Mapped[bool]  # whether workers of the app had its topic already when it was registered


class PartitionCount(Table):
    """The partitions of a topic when an app first met it; with others, users would hash elsewhere and start again."""

    __tablename__ = "partition_count"

    app: Mapped[str] = mapped_column(primary_key=True)
    topic: Mapped[str] = mapped_column(primary_key=True)
    partitions: Mapped[int]


class Person(Table):
    """The field of a topic's events that names a person: one for all metrics that the log ever had of the topic."""

    __tablename__ = "person"

    topic: Mapped[str] = mapped_column(primary_key=True)
    user_field: Mapped[str]


class Turn(Table):
    """What an operator decided about how a topic is read from then on, once and for good.

    A restart of its clocks has neither partition nor place: it holds for metric versions that are registered after it.
    An accepted loss has both (`shoal/models/losses.py`): it holds for the state that its place names.
    """

    __tablename__ = "turn"
    __table_args__ = (sa.CheckConstraint("kind IN ('clock', 'loss')", name="kind"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    app: Mapped[str]
    kind: Mapped[str]
    topic: Mapped[str]
    partition: Mapped[int | None]
    place: Mapped[str | None] = mapped_column(sa.Text)
    who: Mapped[str] = mapped_column(Label)
    at: Mapped[str]


def _of_a_version() -> sa.ForeignKeyConstraint:
    names = ["app", "metric", "version"]
    return sa.ForeignKeyConstraint(names, [f"metric_version.{name}" for name in names])


class Owner(Table):
    """Who may add to a version's stream, for life, and how much of it the log has; one row per version."""

    __tablename__ = "owner"
    __table_args__ = (_of_a_version(), sa.CheckConstraint("kind IN ('file', 'workers')", name="kind"))

    app: Mapped[str] = mapped_column(primary_key=True)
    metric: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    kind: Mapped[str]
    run: Mapped[str]  # the id of the last file run; '' of workers
    # The numbers of rows that must be there, whatever else was lost.
    releases: Mapped[int] = mapped_column(sa.BigInteger)
    activations: Mapped[int] = mapped_column(sa.BigInteger)


class ReleaseRow(Table):
    """A release, byte for byte, and its place in the chain of its group ('' for a metric without groups)."""

    __tablename__ = "release"
    __table_args__ = (_of_a_version(), {"sqlite_with_rowid": False})

    app: Mapped[str] = mapped_column(primary_key=True)
    metric: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    group: Mapped[str] = mapped_column(Label, primary_key=True)
    seq: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    id: Mapped[str] = mapped_column(Label)
    at: Mapped[str]
    body: Mapped[str] = mapped_column(sa.Text)
    previous_hash: Mapped[bytes]
    hash: Mapped[bytes]


class ActivationRow(Table):
    """A level of a group that began to publish, and the private prior that it begins with (as JSON).

    Or a key that nobody declared and that is shown from then on: level -1, prior null. Or the range that a key's values
    are clipped to from then on: level -2, its upper end as prior.
    """

    __tablename__ = "activation"
    __table_args__ = (_of_a_version(), {"sqlite_with_rowid": False})

    app: Mapped[str] = mapped_column(primary_key=True)
    metric: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
    group: Mapped[str] = mapped_column(Label, primary_key=True)
    level: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    at: Mapped[str]
    prior: Mapped[str]
    body: Mapped[str] = mapped_column(sa.Text)
