"""What tests of commands share."""

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from tests.cli.plan_cases import events, said
from tests.support.built_once import built_once
from tests.support.desk import Desk
from tests.support.empty_log import copied
from tests.support.planned_once import planned_once


@pytest.fixture(scope="module", autouse=True)
def made_once() -> Iterator[None]:
    """Make commands, plans of stated workloads and the schema of an empty log once."""
    with built_once(), copied(), planned_once():
        yield


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a mean to plan, and with events that are like what is stated of them."""
    said(tmp_path, {})
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(map(orjson.dumps, events())))
    return tmp_path
