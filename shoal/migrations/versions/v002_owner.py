"""Owners: who alone may add to a metric version's stream, and how much of it the log has."""

from typing import Any

import orjson
import sqlalchemy as sa
from alembic import op

revision = "002"
down_revision = "001"

VERSION = ["app", "metric", "version"]


def _table(name: str, **columns: type[sa.types.TypeEngine[Any]]) -> sa.TableClause:
    """A table of versions, with these columns of its own."""
    place = {"app": sa.String, "metric": sa.String, "version": sa.BigInteger}
    return sa.table(name, *(sa.column(column, kind) for column, kind in (place | columns).items()))


VERSIONS = _table("metric_version", parameters=sa.Text, state=sa.String)
OWNERS = _table(
    "owner", kind=sa.String, run=sa.String, releases=sa.BigInteger, activations=sa.BigInteger, made_again=sa.Text
)
PARTITIONS = sa.table("partition_count", sa.column("app", sa.String), sa.column("topic", sa.String))


def upgrade() -> None:
    """Make the table, and say of the versions that are there who has published them."""
    op.create_table(
        "owner",
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("releases", sa.BigInteger(), nullable=False),
        sa.Column("activations", sa.BigInteger(), nullable=False),
        sa.Column("made_again", sa.Text(), nullable=False),
        sa.CheckConstraint("kind IN ('file-run', 'workers')", name=op.f("ck_owner_kind")),
        sa.ForeignKeyConstraint(
            VERSION, [f"metric_version.{column}" for column in VERSION], name=op.f("fk_owner_metric_version")
        ),
        sa.PrimaryKeyConstraint(*VERSION, name=op.f("pk_owner")),
    )
    rows = list(_owners(op.get_bind()))
    if rows:
        op.bulk_insert(OWNERS, rows)


def _owners(connection: sa.Connection) -> list[dict[str, Any]]:
    """Workers own what they have read the topic of: a file run could add nothing there. The rest is of file runs.

    A file run that is under way has the older code, which asks nobody; the next one takes its place. Workers make sure
    once, in all partitions, that their state has what the log has.
    """
    read = {tuple(row) for row in connection.execute(sa.select(PARTITIONS.c.app, PARTITIONS.c.topic))}
    releases, activations = _rows_of(connection, "release"), _rows_of(connection, "activation")
    owners = []
    for row in connection.execute(sa.select(VERSIONS)):
        place = (row.app, row.metric, row.version)
        by_workers = row.state != "ended" and (row.app, orjson.loads(row.parameters).get("topic")) in read
        owners.append(
            {
                "app": row.app, "metric": row.metric, "version": row.version, "run": "",
                "kind": "workers" if by_workers else "file-run",
                "releases": releases.get(place, 0), "activations": activations.get(place, 0),
                "made_again": "[]" if place in releases or place in activations else "all",
            }
        )  # fmt: skip
    return owners


def _rows_of(connection: sa.Connection, name: str) -> dict[tuple[Any, ...], int]:
    """How many rows of a table each version has."""
    place = _table(name).c
    counted = sa.select(*place, sa.func.count().label("rows")).group_by(*place)
    return {(row.app, row.metric, row.version): row.rows for row in connection.execute(counted)}


def downgrade() -> None:
    """Refused: an older shoal would not ask who owns a version."""
    raise NotImplementedError("owners keep a key to one stream; restore a backup instead")
