"""Fixtures for tests of inspections: commands and the schema of an empty log, made once for each module."""

from collections.abc import Iterator

import pytest

from tests.support.built_once import built_once
from tests.support.empty_log import copied


@pytest.fixture(scope="module", autouse=True)
def made_once() -> Iterator[None]:
    """Make commands and the schema of an empty log once."""
    with built_once(), copied():
        yield
