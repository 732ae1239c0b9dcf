"""The steps of the audit log's schema, taken by alembic, which only a migration that is due imports."""

import threading

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

_running = threading.Lock()  # alembic keeps the running migration in a global of its module


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Take all steps up to a revision, in the caller's transaction."""
    config = Config()
    config.set_main_option("script_location", "shoal:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    with _running:
        command.upgrade(config, revision)
