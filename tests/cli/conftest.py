"""What tests of commands share."""

from pathlib import Path

import orjson
import pytest

from tests.cli.plan_cases import events, said
from tests.support.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a mean to plan, and with events that are like what is stated of them."""
    said(tmp_path, {})
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(map(orjson.dumps, events())))
    return tmp_path
