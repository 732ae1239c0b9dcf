"""The pictures of docs/explanation/algorithms are those that the code makes.

Compared are the numbers that a picture draws, which its file has in its description, and its texts, which matplotlib
leaves in comments beside their outlines. Any version of matplotlib has these two alike, but not paths and identifiers.
"""

import json
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from docs.generate.pictures.__main__ import FOLDER
from docs.generate.pictures.card import stored, svg
from docs.generate.pictures.catalogue import PICTURES
from tests.docs.computed import PICTURED, wrong
from tests.support.cover import in_a_loop

DESCRIPTION = ".//{http://purl.org/dc/elements/1.1/}description"
COMMENT = re.compile(r"<!-- (.*?) -->")
IMAGE = re.compile(r"!\[([^\]]+)\]\(\.\./\.\./images/algorithms/(\w+)\.svg\)")


@pytest.fixture(scope="module", autouse=True)
def computed_once() -> Iterator[None]:
    """Compute the numbers of a picture once: its page shows some of them too."""
    with pytest.MonkeyPatch.context() as patch:
        for picture in PICTURES.values():
            patch.setattr(picture, "data", cache(picture.data))
        yield


def described(text: str) -> Any:
    description = ElementTree.fromstring(text).find(DESCRIPTION)
    assert description is not None
    assert description.text
    return json.loads(description.text)


def flat(value: Any, where: str = "") -> dict[str, Any]:
    """The numbers and texts of nested lists and objects, by their places."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if parts is None:
        return {where: value}
    return {place: each for key, part in parts for place, each in flat(part, f"{where}/{key}").items()}


def differing(one: Any, other: Any) -> list[str]:
    """The places at which two of them are not the same, to the digits that machines agree in."""
    first, second = flat(one), flat(other)
    return [place for place in {**first, **second} if not is_near(first.get(place), second.get(place))]


def is_near(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float | int):
        return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-12)
    return bool(one == other)


# Most decays are slow to compute, and nothing else on their page is.
SHORT = [pytest.param(name, marks=[pytest.mark.long] if name == "decays" else []) for name in PICTURES]


@pytest.mark.parametrize("name", SHORT)
def test_a_picture_draws_what_the_code_computes_today(name: str) -> None:
    # given the file, and what its program makes now
    text = (FOLDER / f"{name}.svg").read_text()
    made = svg(PICTURES[name])
    # then it has the same numbers and the same words
    assert differing(described(text), described(made)) == [], "run: make pictures"
    assert COMMENT.findall(text) == COMMENT.findall(made), "run: make pictures"


@in_a_loop
@pytest.mark.parametrize("page", sorted(PICTURED.glob("*.md")), ids=lambda page: page.stem)
def test_what_a_page_computes_is_what_it_says(page: Path) -> None:
    assert wrong(page) == ""


@in_a_loop
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_can_be_read_on_a_dark_page(name: str) -> None:
    # given the first thing that is drawn: then it is a white card, as large as the picture
    patch = re.search(
        r'id="patch_1".*?<path d="([^"]*)"\s*style="fill: (#\w+)"', (FOLDER / f"{name}.svg").read_text(), re.DOTALL
    )
    assert patch is not None
    assert patch[2] == "#ffffff"


def test_a_picture_is_the_same_bytes_each_time() -> None:
    name = next(iter(PICTURES))
    assert svg(PICTURES[name]) == svg(PICTURES[name])


def test_numbers_that_change_are_noticed() -> None:
    was = {"error": [1.5, 2.0], "key": "a"}
    assert flat(stored(was)) == {"/error/0": 1.5, "/error/1": 2.0, "/key": "a"}
    assert differing(was, stored(was)) == []
    assert differing(was, {**was, "error": [1.5, 2.001]}) == ["/error/1"]
    assert differing(was, {**was, "error": [1.5]}) == ["/error/1"]
    assert differing(was, {**was, "key": None}) == ["/key"]


def test_every_page_has_a_picture_and_every_picture_a_page() -> None:
    pages = {page.stem: page.read_text() for page in PICTURED.glob("*.md")}
    shown = {stem: [name for _, name in IMAGE.findall(text)] for stem, text in pages.items()}
    files = {file.stem for file in FOLDER.glob("*.svg")}
    assert {name for names in shown.values() for name in names} == set(PICTURES) == files
    assert [stem for stem, names in shown.items() if not names and stem != "README"] == []


def test_every_page_is_in_the_index_once() -> None:
    index = (PICTURED / "README.md").read_text()
    pages = {page.name for page in PICTURED.glob("*.md")} - {"README.md"}
    assert sorted(re.findall(r"\]\((\w[\w-]*\.md)\)", index)) == sorted(pages)
