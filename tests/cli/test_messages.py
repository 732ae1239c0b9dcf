"""What people read who made a mistake in their configuration: the words of this project, and what to write instead.

`messages.toml` lists mistakes beside the messages. A change of a message is seen there, in the words that people read.
"""

import itertools
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import BaseModel
from typer.testing import CliRunner

from shoal.agents.audit import key_file
from shoal.agents.cli.commands import check
from shoal.models.config.file import MODELS, load
from shoal.models.errors import ConfigError, ShoalError

SAID = tomllib.loads(Path(__file__).with_name("messages.toml").read_text("utf-8"))
BASE: str = SAID["base"]
# Words of the library that reads the file, of Python and of regular expressions.
FOREIGN = (
    "pydantic", "valid", "literal", "pattern", "tuple", "string", "integer", "boolean", "dictionary", "instance",
    "Fraction", "Decimal", "NoneType", "fractional", "validation", "Input", "input", "class", "pathlib", "item",
    "parse", "^", "\0",
)  # fmt: skip
OURS = ("not valid TOML: Invalid statement", "not valid TOML", "is pattern (user, time or group, public)")
# What TOML can hold, to stand where it does not belong.
ODD = (
    r'"a\u0000b"',
    "true",
    "-3",
    "2.5",
    "1e400",
    "nan",
    '""',
    '"x y"',
    "[]",
    "[1]",
    '["a", "b"]',
    "{}",
    "{ a = 1 }",
    "1979-05-27",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(mistake: dict[str, Any]) -> str:
    text: str = SAID[mistake.get("of", "base")]
    for old, new in mistake["replace"]:
        assert old == "*" or old in text
        text = new if old == "*" else text.replace(old, new, 1)
    return text


def checked(text: str) -> str:
    """What `shoal check` says on stderr about a configuration; a mistake is an error with a message, or a warning."""
    Path("shoal.toml").write_text(text, "utf-8")
    app = typer.Typer()
    app.command()(check.check)
    done = CliRunner().invoke(app, ["shoal.toml"])
    if isinstance(done.exception, ShoalError):
        return str(done.exception)
    assert done.exit_code == 0, done.exception
    return "\n".join(line for line in done.stderr.splitlines() if "only what `shoal run` needs" not in line)


@pytest.mark.parametrize("mistake", SAID["mistake"], ids=lambda mistake: mistake["name"])
def test_a_mistake_is_answered_in_words(folder: Path, mistake: dict[str, Any]) -> None:
    key_file.new(folder / "shoal.key")
    said = checked(made(mistake)).replace(f"{folder}/", "")
    assert said == mistake["says"]
    assert foreign(said) == []


def foreign(said: str) -> list[str]:
    for phrase in OURS:
        said = said.replace(phrase, "")
    return [word for word in FOREIGN if word in said]


def test_enough_mistakes_are_listed_and_none_twice() -> None:
    names = [mistake["name"] for mistake in SAID["mistake"]]
    assert len(names) == len(set(names)) >= 72


def odd() -> Iterator[tuple[str, str]]:
    """Every key of every table, with everything that does not belong there."""
    for (table, model), value in itertools.product(MODELS.items(), ODD):
        for key in model.model_fields:
            yield f"{table}.{key} = {value}", placed(table, model, key, value)


def placed(table: str, model: type[BaseModel], key: str, value: str) -> str:
    lines = [f"{key} = {value}"]
    if table in ("decay", "cell", "selection", "clip"):
        return f"{BASE}{table} = {{ {lines[0]} }}\n"
    said = tomllib.loads(BASE).get(table, {})
    known = said[0] if isinstance(said, list) else said
    head = f"[[{table}]]" if table == "metric" else f"[{table}]"
    kept = BASE
    if key in known:
        begin = kept.index(head)
        old = next(line for line in kept[begin:].splitlines() if line.startswith(f"{key} ="))
        return kept[:begin] + kept[begin:].replace(old, lines[0], 1)
    return kept.replace(head, f"{head}\n{lines[0]}", 1) if head in kept else f"{head}\n{lines[0]}\n{kept}"


def test_no_value_of_any_key_gets_an_answer_in_foreign_words(folder: Path) -> None:
    """A value that is refused is refused in one line that names the file, and never by a traceback."""
    file, wrong = folder / "shoal.toml", {}
    for name, text in odd():
        file.write_text(text, "utf-8")
        try:
            load(file)
        except ConfigError as error:
            said = str(error).removeprefix(f"{file}: ")
            if foreign(said) or "\n" in said or said == str(error):
                wrong[name] = said
    assert wrong == {}


def test_a_character_that_no_path_or_name_may_have_is_refused_by_its_place(folder: Path) -> None:
    """Python's calls on paths, SQL and C refuse it each in its own way, some only after a command has begun."""
    texts = dict(odd())
    zeros = {name: text for name, text in texts.items() if "\\u0000" in name}
    assert len(zeros) * len(ODD) == len(texts)
    zeros["a key"] = BASE.replace("user =", r'"us\u0000er" =')
    zeros["a list"] = BASE + r'q = ["a", "b\u0000"]'
    zeros["a table"] = BASE + r'["we\u0000b"]'
    for name, text in zeros.items():
        (folder / "shoal.toml").write_text(text, "utf-8")
        with pytest.raises(ConfigError, match=r"has the character \\u0000; remove it") as refused:
            load(folder / "shoal.toml")
        key = name.partition(".")[2].partition(" ")[0]
        assert key in str(refused.value)
        assert "\0" not in str(refused.value)


@pytest.mark.parametrize("table", ["kafka", "audit", "privacy", "web", "metric"])
@pytest.mark.parametrize("value", ODD)
def test_a_table_that_is_none_is_answered_with_its_brackets(
    folder: Path, table: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a table that is written as something else, and the environment sets one of its keys
    monkeypatch.setenv("SHOAL_KAFKA_BROKERS", "localhost:9092")
    monkeypatch.setenv("SHOAL_PRIVACY_EPSILON", "1")
    rest = {"privacy": "[privacy]\nepsilon = 1\n"}
    text = f"{table} = {value}\n" + "".join(said for name, said in rest.items() if name != table)
    (folder / "shoal.toml").write_text(text, "utf-8")
    with pytest.raises(ConfigError) as refused:
        load(folder / "shoal.toml")
    assert foreign(str(refused.value).replace(str(folder), "")) == []
