"""The tutorial, typed as it stands: every block of commands, every answer, and what is printed.

The installation is the business of `tests/distribution/test_wheel.py`. Numbers with noise differ with every key, and
are compared by their form. `[...]` stands for what the page leaves out.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.agents.init.questions import QUESTIONS
from tests.docs.forked import forked

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/tutorial.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
NAMES = "|".join(question.name for question in QUESTIONS)
PROMPT = re.compile(rf"^((?:{NAMES})(?: \[[^\]]*\])?:|Write .*\]:|Make .*\]:) ?(.*)$")
NOISY = re.compile(r"(about )?-?[\d.]+ ± [\d.]+( \(-?[\d.]+ to -?[\d.]+\))?")


def blocks() -> Iterator[tuple[str, str | None, str]]:
    """Each block of commands with what is shown to be printed, and the file that is shown next."""
    found = BLOCK.findall(PAGE)
    for index, (language, body) in enumerate(found):
        if language == "sh":
            rest = found[index + 1 :]
            shown = rest[0][1] if rest and rest[0][0] == "text" else None
            file = rest[1][1] if len(rest) > 1 and rest[1][0] == "toml" else ""
            yield body, shown, file


def plain(text: str) -> str:
    """The text without what depends on the key or on the width of a terminal."""
    return " ".join(NOISY.sub("VALUE", text).split())


def answers(shown: str) -> list[str]:
    """What is typed in a conversation."""
    return [match[2] for line in shown.splitlines() if (match := PROMPT.match(line))]


def without_answers(shown: str) -> str:
    return "\n".join(match[1] if (match := PROMPT.match(line)) else line for line in shown.splitlines())


@pytest.fixture
def checkout(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the examples, in which `shoal` is a command."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("*.key*", "*.db*"))
    shoal = tmp_path / ".venv/bin/shoal"
    shoal.parent.mkdir(parents=True)
    with forked(tmp_path_factory.mktemp("shoal")) as program:
        shoal.write_text(program)
        shoal.chmod(0o755)
        yield tmp_path


@pytest.mark.slow
def test_the_tutorial_can_be_typed_and_prints_what_it_shows(checkout: Path) -> None:
    path = f"{checkout / '.venv/bin'}{os.pathsep}{os.environ['PATH']}"
    typed = [block for block in blocks() if "pip install" not in block[0]]
    assert len(typed) == len(list(blocks())) - 1
    for commands, shown, file in typed:
        done = subprocess.run(
            ["sh", "-e", "-c", commands],
            input="".join(f"{answer}\n" for answer in answers(shown or "")),
            cwd=checkout, env=os.environ | {"PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (commands, done.stdout)
        rest = plain(done.stdout)
        for part in filter(plain, without_answers(shown or "").split("[...]")):
            before, found, rest = rest.partition(plain(part))
            assert found == plain(part), (part, done.stdout)
            assert not before or "[...]" in (shown or ""), before
        assert not rest or shown is None or "[...]" in shown, rest
        if file:
            assert file in (checkout / "shoal.toml").read_text()
    assert "<html" in (checkout / "page.html").read_text("utf-8")[:2000]


def test_all_answers_of_the_conversation_are_found() -> None:
    (shown,) = [shown for commands, shown, _ in blocks() if "shoal init" in commands and "--yes" not in commands]
    assert [answer for answer in answers(shown or "") if answer] == ["0 200", "1", "150", "yes"]
    assert len(answers(shown or "")) == 15
