"""Fixtures for tests of the audit log: commands and the schema of an empty log, made once for each module."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from tests.support.built_once import built_once
from tests.support.empty_log import copied


@pytest.fixture(scope="module", autouse=True)
def made_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make commands once, and the schema of an empty log except where migrations themselves are tested."""
    with built_once(), nullcontext() if request.path.name in ("test_database.py", "test_views.py") else copied():
        yield
