"""Turns: what operators decided about how a topic is read from then on, such as a restart of its clocks."""

import sqlalchemy as sa
from alembic import op

revision = "007"
down_revision = "006"


def upgrade() -> None:
    """Add the table."""
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


def downgrade() -> None:
    """Refused: an older shoal would give later versions the clock that was restarted."""
    raise NotImplementedError(
        "restarts of clocks and accepted losses decide how topics are read; restore a backup instead"
    )
