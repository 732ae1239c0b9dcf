"""The README's example is the one in the repository, its commands run, and its figures are theirs.

That its links, options and configurations exist is seen to by `test_docs.py`, what its Kafka commands do by
`tests/cli/test_kafka_commands.py`, its demo by `tests/cli/test_demo.py`.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
# What depends on the key; all else of a release is the same for everyone who runs the example.
NOISY = {"value", "low", "high"}


def block(language: str, mentions: str) -> str:
    """The block of code of a language that mentions something."""
    (found,) = [body for body in re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S) if mentions in body]
    return str(found)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A fresh folder with the examples, and nothing else."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("*.key", "*.used", "*.db*"))
    return tmp_path


def sh(commands: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-e"], input=commands, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def releases(output: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in output.splitlines() if line.startswith("{")]


def test_the_configuration_is_that_of_the_examples() -> None:
    shown = block("toml", "[[metric]]")
    assert shown.startswith("[kafka]")
    assert (ROOT / "examples" / "shoal.toml").read_text("utf-8").endswith("\n" + shown)
    event = orjson.loads(re.findall(r'`(\{"customer".*\})`', README)[0])
    assert event == orjson.loads((ROOT / "examples" / "purchases.jsonl").read_bytes().splitlines()[0])


def test_its_commands_for_a_file_run_and_print_what_it_shows(checkout: Path) -> None:
    # when the commands are run as they stand, but for the environment's activation
    activate, commands = block("sh", "shoal run").split("\n", 1)
    assert activate == ". .venv/bin/activate"
    output = sh(commands, checkout)
    # then there are nine releases, and all of the last one but its noise is what the README shows
    found = releases(output)
    shown = orjson.loads(block("json", "noise_sd"))
    assert len(found) == 9
    assert list(found[-1]) == list(shown)
    assert {name: found[-1][name] for name in shown.keys() - NOISY} == {
        name: shown[name] for name in shown.keys() - NOISY
    }
    # and the same once more, to the byte; but not with other events
    assert releases(sh(commands.split("\n", 1)[1], checkout)) == found
    events = checkout / "examples" / "purchases.jsonl"
    events.write_bytes(events.read_bytes().replace(b"29.33", b"29.34"))
    with pytest.raises(AssertionError, match="two values"):
        sh(commands.split("\n", 1)[1], checkout)


@pytest.mark.parametrize(
    ("algorithm", "cap", "claim"),
    [("naive", 4, r"stays within (\d+) dollars"), ("full", 64, r"`max_contributions = 64` it is (\d+)")],
)
def test_its_noise_intervals_are_those_of_the_example(checkout: Path, algorithm: str, cap: int, claim: str) -> None:
    config = checkout / "examples" / "shoal.toml"
    text = config.read_text("utf-8")
    text = re.sub(r'algorithm = "\w+"', f'algorithm = "{algorithm}"', text)
    config.write_text(re.sub(r"max_contributions = \d+", f"max_contributions = {cap}", text))
    last = releases(sh(block("sh", "shoal run").split("\n", 1)[1], checkout))[-1]
    (said,) = re.findall(claim, " ".join(README.split()))
    assert round((last["high"] - last["low"]) / 2) == int(said)


def test_its_picture_is_small_and_there() -> None:
    (path,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert 20_000 < (ROOT / path).stat().st_size < 150_000
