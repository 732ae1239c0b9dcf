"""No text of a stranger has a control or invisible character on a terminal, and JSON keeps its meaning."""

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from shoal.models.printable import printable, printable_lines

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def categories(text: str) -> set[str]:
    return {unicodedata.category(one) for one in text}


@given(st.text(st.characters(exclude_categories=())))
def test_no_character_is_left_that_a_terminal_obeys_or_hides(text: str) -> None:
    assert not categories(printable(text)) & HIDDEN
    assert not categories(printable_lines(text).replace("\n", "")) & HIDDEN
    assert printable_lines(text).count("\n") == text.count("\n")


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_means_the_same_whoever_escaped_its_characters(text: str) -> None:
    """With escapes of another form, such as backslash and x, `shoal tail --json | jq` would fail."""
    assert json.loads(printable(json.dumps(text, ensure_ascii=False))) == text


def test_letters_of_all_scripts_stay() -> None:
    text = "Zürich, 東京, القاهرة, naïve\u00a0café, 🐟"
    assert printable(text) == text
