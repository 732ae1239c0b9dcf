"""A schema of the audit log with one more step than this version of shoal has, so that a log of this version is old."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from alembic.config import Config

from shoal.agents.audit import database, migration
from shoal.migrations import versions

NOW = database.revisions()[-1]
LATER = f"{int(NOW) + 1:03d}"
STEP = f'''"""A step that the next version of shoal takes."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "{LATER}", "{NOW}"


def upgrade() -> None:
    op.create_table("later", sa.Column("one", sa.Integer()))
'''


@contextmanager
def later_schema(folder: Path) -> Iterator[None]:
    """The steps of the schema are those of this version, and one more; `folder` is for them."""
    steps = folder / "versions"
    shutil.copytree(next(iter(versions.__path__)), steps, ignore=shutil.ignore_patterns("__pycache__"))
    (steps / f"v{LATER}_later.py").write_text(STEP)

    def config() -> Config:
        made = Config()
        made.set_main_option("version_locations", str(steps))
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(versions, "__path__", [str(steps)])
        patch.setattr(migration, "Config", config)
        database.revisions.cache_clear()
        try:
            yield
        finally:
            database.revisions.cache_clear()
