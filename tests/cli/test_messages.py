"""What people read who made a mistake in their configuration: the words of this project, and what to write instead.

`messages.toml` lists mistakes beside the messages. A change of a message is seen there, in the words that people read.
"""

import itertools
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from shoal.agents.audit import key_file
from shoal.agents.cli.main import main
from shoal.agents.inspection.inspect import NO_KAFKA, Inspection
from shoal.models.config.file import MODELS, load
from shoal.models.errors import ConfigError, ShoalError
from tests.support.cover import in_a_loop

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
    """Refusal of a configuration by `shoal check`, or its warnings: what its user reads on stderr."""
    Path("shoal.toml").write_text(text, "utf-8")
    inspected = Inspection(Path("shoal.toml"))
    inspected.look()
    try:
        inspected.refuse()
    except ShoalError as error:
        return str(error)
    return "\n".join(f"shoal: warning: {text}" for text in inspected.warnings if text != NO_KAFKA)


@in_a_loop
@pytest.mark.parametrize("mistake", SAID["mistake"], ids=lambda mistake: mistake["name"])
def test_a_mistake_is_answered_in_words(folder: Path, mistake: dict[str, Any]) -> None:
    (folder / "shoal.key").unlink(missing_ok=True)
    key_file.new(folder / "shoal.key")
    said = checked(made(mistake)).replace(f"{folder}/", "")
    assert said == mistake["says"]
    assert foreign(said) == []


@pytest.mark.parametrize("is_refused", [True, False])
def test_the_command_prints_on_stderr_what_is_listed(
    folder: Path, is_refused: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    key_file.new(folder / "shoal.key")
    mistake = next(one for one in SAID["mistake"] if one["says"].startswith("shoal: warning: ") != is_refused)
    Path("shoal.toml").write_text(made(mistake), "utf-8")
    monkeypatch.setattr(sys, "argv", ["shoal", "check", "shoal.toml"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert bool(ended.value.code) == is_refused
    lines = [line for line in capsys.readouterr().err.splitlines() if NO_KAFKA not in line]
    assert "\n".join(lines).replace(f"{folder}/", "") == ("shoal: " if is_refused else "") + mistake["says"]


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


@in_a_loop
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
