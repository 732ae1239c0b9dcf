"""A browser for all tests of the page, and the page of a small town."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.agents.dashboard.file import page_of
from tests.support.browser import Browser, open_browser
from tests.support.releases import lines, town


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with open_browser() as started:
        yield started


@pytest.fixture(scope="session")
def town_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of several kinds of metrics, one of them with a thousand groups."""
    path = tmp_path_factory.mktemp("page") / "town.html"
    path.write_text(page_of(lines(town()).splitlines(), "town.jsonl").text, "utf-8")
    return path
