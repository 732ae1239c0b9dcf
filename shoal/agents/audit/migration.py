"""The steps of the audit log's schema, taken by alembic, which only a migration that is due imports."""

import threading

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text

from shoal.models.views import VIEWS

_running = threading.Lock()  # alembic keeps the running migration in a global of its module


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Take all steps up to a revision, in the caller's transaction; at the head, say in the database what views are."""
    config = Config()
    config.set_main_option("script_location", "shoal:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    with _running:
        command.upgrade(config, revision)
    if revision == "head" and connection.dialect.name == "postgresql":
        _describe(connection)


def _describe(connection: Connection) -> None:
    """Comments on the views and their columns; SQLite has none."""
    for view, (row, columns) in VIEWS.items():
        texts = {f"VIEW {view}": row} | {f"COLUMN {view}.{column}": meaning for column, meaning in columns.items()}
        for thing, meaning in texts.items():
            quoted = meaning.replace("'", "''").replace(":", r"\:")
            connection.execute(text(f"COMMENT ON {thing} IS '{quoted}'"))
