"""The relation that a ledger counts by; a ledger that is there already counts by values."""

import sqlalchemy as sa
from alembic import op

revision = "004"
down_revision = "003"


def upgrade() -> None:
    """Add the column."""
    op.add_column("budget", sa.Column("relation", sa.String(), nullable=False, server_default="values"))


def downgrade() -> None:
    """Refused: an older shoal would take any metric into any ledger."""
    raise NotImplementedError("the relation keeps metrics apart that hide different things; restore a backup instead")
