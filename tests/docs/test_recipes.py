"""What docs/guides/recipes.md shows of a recipe's file is in that file, for only the file is tried."""

import re

from tests.support.recipes import PAGE, RECIPES

BLOCK = re.compile(r"^```(?:sql|properties)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SUFFIXES = {".properties", ".py", ".sh", ".sql", ".toml"}  # and no log or key of somebody who tried it


def test_what_the_page_shows_is_in_the_files() -> None:
    shown = BLOCK.findall(PAGE.read_text())
    files = {file: file.read_text() for file in RECIPES.rglob("*.*") if file.suffix in SUFFIXES}
    assert len(shown) > 8
    assert [block for block in shown if not any(block in text for text in files.values())] == []
    # and the page says which: there is no file that it does not name
    assert [file.name for file in files if file.name not in PAGE.read_text()] == []
