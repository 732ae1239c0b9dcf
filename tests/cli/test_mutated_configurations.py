"""Configuration files with lines that were changed, lost, doubled or mixed: each is refused in a sentence, or works.

A file that is accepted is compiled, and reads records of an example. `SHOAL_TEST_EFFORT` says how many files there are:
2,000 in `make test-long`.
"""

import random
import re
import string
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from shoal.agents.audit import key_file
from shoal.agents.audit.session import load_config
from shoal.models.config.file import Config
from shoal.models.errors import ConfigError, ShoalError
from shoal.stream.file_run import FileRun, line_of
from shoal.stream.topic import plan_topic
from tests.cli.test_messages import checked
from tests.stream.simulation import SECRET
from tests.support.effort import tries

ROOT = Path(__file__).parents[2]
FILES = [*sorted((ROOT / "examples").glob("*.toml")), *sorted((ROOT / "tests" / "golden").glob("*.toml"))]
BASES = [path.read_text("utf-8") for path in FILES if "[[metric]]" in path.read_text("utf-8")]
EVENTS = [
    line.encode()
    for path in sorted((ROOT / "examples").glob("*.jsonl"))
    for line in path.read_text("utf-8").splitlines()[:10]
]
ODD = [
    '""', '"x"', "0", "-1", "1.5", "1e400", "-0.0", "nan", "-inf", "9" * 30, "true", "[]", "{}", "[1]", "[[1, 2], [3]]",
    "1979-05-27", "07:32:00", '"1h"', '"-1h"', '"0s"', '"9999999999d"', '"1 / 3"', '"1/0"', '"\\u0000"', '"é"',
    '"' + "x" * 5000 + '"', "1e-300", "[0, 0]", "[1, 0]", "[nan, 1]", '{ kind = "window" }', '{ kind = "none", x = 1 }',
    '"add-remove"', '"values"', '"user"', '"user-slot"', '"event"', '"sharp"', '"naive"', '"distribution"',
    '"variance"', '"1970-01-01"', '"9999-12-31T23:59:59Z"', "0x10", "1_000", '"""x"""', "'x'", "= 1", "",
]  # fmt: skip
CHARACTERS = ["\0", "\n", "\r", '"', "'", "\\", "{", "[", "#", "=", ".", "é", "\U0001f600", "\u202e", "\ufeff"]
FOREIGN = re.compile(r"Traceback|pydantic|Error\b|NoneType|object at 0x|\bbug\b|Fraction\(")
SECONDS = 20  # of processor time that one file may take, on a slow machine


def mutated(draw: random.Random) -> str:
    """A configuration in which one to three lines are not what they were."""
    lines = draw.choice(BASES).splitlines()
    for _ in range(draw.choice([1, 1, 2, 3])):
        at = draw.randrange(len(lines))
        key, equals, _ = lines[at].partition("=")
        match draw.randrange(8):
            case 0 | 1 | 2 if equals:
                lines[at] = f"{key}= {draw.choice(ODD)}"
            case 3:
                lines.insert(at, draw.choice(lines))
            case 4 if len(lines) > 1:
                del lines[at]
            case 5:
                place = draw.randrange(len(lines[at]) + 1)
                lines[at] = lines[at][:place] + draw.choice(CHARACTERS) + lines[at][place:]
            case 6 if equals:
                lines[at] = key[: draw.randrange(1, len(key) + 1)] + draw.choice(string.ascii_lowercase) + " = 1"
            case _:
                lines.insert(at, draw.choice(draw.choice(BASES).splitlines()))
    return "\n".join(lines)


def works(config: Config) -> int:
    """Compile each topic and read records; the number of releases."""
    releases = 0
    for topic in config.topics:
        plan = plan_topic(config, topic, SECRET, source_partitions=1, contributions_partitions=1)
        lines = (line_of(offset, raw) for offset, raw in enumerate(EVENTS))
        releases += sum(len(output.releases) for output in FileRun(plan).outputs(lines, end=False))
    return releases


def outcome(file: Path, text: str) -> tuple[str, str]:
    """Whether a file is refused or works, and in which words; anything else is raised."""
    file.write_text(text, "utf-8")
    try:
        config = load_config(file)
    except ConfigError as error:
        return "refused", str(error)
    try:
        works(config)
    except ShoalError as error:
        return "refused later", str(error)
    return "works", ""


def test_a_mutated_configuration_is_refused_in_a_sentence_or_works(tmp_path: Path) -> None:
    draw, file, wrong, counts = random.Random(8), tmp_path / "shoal.toml", [], Counter[str]()
    key_file.new(tmp_path / "shoal.key")
    for number in range(tries(400)):
        text, began = mutated(draw), time.process_time()
        try:
            kind, said = outcome(file, text)
        except Exception as error:
            wrong.append((number, repr(error), text))
            continue
        counts[kind] += 1
        if FOREIGN.search(said) or "\n" in said or time.process_time() - began > SECONDS:
            wrong.append((number, said, text))
    assert wrong == []
    assert {"refused", "works"} <= counts.keys()


def test_check_answers_mutated_configurations_in_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without brokers, it looks at all sections: key, ledger and guarantee, too."""
    monkeypatch.chdir(tmp_path)
    key_file.new(tmp_path / "shoal.key")
    draw, wrong = random.Random(9), list[Any]()
    for _ in range(tries(40)):
        text = without_brokers(mutated(draw))
        try:
            said = checked(text)
        except Exception as error:
            wrong.append((repr(error), text))
            continue
        if FOREIGN.search(said):
            wrong.append((said, text))
    assert wrong == []


def without_brokers(text: str) -> str:
    """The file without its table [kafka], so that nothing is asked for over the network."""
    return re.sub(r"(?ms)^\[kafka\].*?(?=^\[)", "", text)
