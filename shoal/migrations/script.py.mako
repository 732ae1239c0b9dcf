"""${message}."""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    """One step up."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """One step down."""
    ${downgrades if downgrades else "pass"}
