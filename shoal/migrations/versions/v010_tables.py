"""Tables of the log, its budget, the metric versions with their owners, and what they released; and views of them."""

import sqlalchemy as sa
from alembic import op

from shoal.migrations import views

revision = "010"  # earlier ones were made before the first release
down_revision = None

VERSION = ["app", "metric", "version"]


def upgrade() -> None:
    """Make the tables in an empty database."""
    _make_ledger()
    _make_reading()
    _make_published()
    for statement in views.statements(op.get_bind().dialect.name):
        op.execute(statement)


def _make_ledger() -> None:
    op.create_table(
        "log",
        sa.Column("one", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("created", sa.String(), nullable=False),
        sa.CheckConstraint("one = 1", name=op.f("ck_log_one")),
        sa.PrimaryKeyConstraint("one", name=op.f("pk_log")),
    )
    op.create_table(
        "ledger_budget",
        sa.Column("one", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("epsilon", sa.String(), nullable=False),
        sa.Column("delta", sa.String(), nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("relation", sa.String(), nullable=False),
        sa.CheckConstraint("one = 1", name=op.f("ck_ledger_budget_one")),
        sa.PrimaryKeyConstraint("one", name=op.f("pk_ledger_budget")),
    )
    op.create_table(
        "budget_change",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("epsilon", sa.String(), nullable=False),
        sa.Column("delta", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_budget_change")),
    )
    texts = ["digest", "parameters", "key_fingerprint", "epsilon", "delta", "unit", "relation"]
    op.create_table(
        "metric_version",
        *_version_columns(),
        *(sa.Column(name, sa.Text() if name == "parameters" else sa.String(), nullable=False) for name in texts),
        sa.Column("charge_epsilon", sa.String(), nullable=False),
        sa.Column("charge_delta", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("ended_at", sa.String(), nullable=True),
        sa.Column("input_digest", sa.String(), nullable=True),
        sa.Column("registered", sa.String(), nullable=False),
        sa.Column("added", sa.Boolean(), nullable=False),
        sa.CheckConstraint("state IN ('active', 'retired', 'ended')", name=op.f("ck_metric_version_state")),
        sa.PrimaryKeyConstraint(*VERSION, name=op.f("pk_metric_version")),
    )
    op.create_table(
        "owner",
        *_version_columns(),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("releases", sa.BigInteger(), nullable=False),
        sa.Column("activations", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IN ('file', 'workers')", name=op.f("ck_owner_kind")),
        _of_a_version("owner"),
        sa.PrimaryKeyConstraint(*VERSION, name=op.f("pk_owner")),
    )


def _make_reading() -> None:
    op.create_table(
        "partition_count",
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("partitions", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("app", "topic", name=op.f("pk_partition_count")),
    )
    op.create_table(
        "person",
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("user_field", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("topic", name=op.f("pk_person")),
    )
    op.create_table(
        "turn",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("partition", sa.Integer(), nullable=True),
        sa.Column("place", sa.Text(), nullable=True),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.CheckConstraint("kind IN ('clock', 'loss')", name=op.f("ck_turn_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_turn")),
    )


def _make_published() -> None:
    op.create_table(
        "release",
        *_version_columns(),
        sa.Column("group", sa.String(), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("previous_hash", sa.LargeBinary(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        _of_a_version("release"),
        sa.PrimaryKeyConstraint(*VERSION, "group", "seq", name=op.f("pk_release")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "activation",
        *_version_columns(),
        sa.Column("group", sa.String(), nullable=False),
        sa.Column("level", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.String(), nullable=False),
        sa.Column("prior", sa.String(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        _of_a_version("activation"),
        sa.PrimaryKeyConstraint(*VERSION, "group", "level", name=op.f("pk_activation")),
        sqlite_with_rowid=False,
    )


def _version_columns() -> list[sa.Column[int] | sa.Column[str]]:
    return [
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
    ]


def _of_a_version(table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_metric_version")
    return sa.ForeignKeyConstraint(VERSION, [f"metric_version.{column}" for column in VERSION], name=name)


def downgrade() -> None:
    """Refused: an audit log is not unmade."""
    raise NotImplementedError("the audit log is not unmade; restore a copy from before with shoal audit restore")
