"""The README's examples, and those of docs/guides/examples.md, are the repository's; commands run, figures are theirs.

That links, options and configurations exist is tested in `test_docs.py`, the demo in `tests/cli/test_demo.py`.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from shoal.models.config.file import load
from tests.support.workers import shoal

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
EXAMPLES = (ROOT / "docs/guides/examples.md").read_text("utf-8")
# What depends on the key; all else of a release is the same for everyone who runs the example.
NOISY = {"value", "noise_sd", "low", "high"}


def block(page: str, language: str, mentions: str) -> str:
    """The page's block of code of a language that mentions something."""
    (body,) = [body for body in re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S) if mentions in body]
    return str(body)


def examples(folder: Path) -> Path:
    """A fresh folder with the examples, and nothing else."""
    shutil.copytree(ROOT / "examples", folder / "examples", ignore=shutil.ignore_patterns("*.key", "*.used", "*.db*"))
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return examples(tmp_path)


def sh(commands: str, folder: Path) -> str:
    """What the commands print."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-e"], input=commands, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def again(commands: str, folder: Path) -> str:
    """What commands print that a shell has run before, each in a process that need not import anything."""
    printed = ""
    for command in commands.splitlines():
        name, *arguments = shlex.split(command)
        done = shoal(*arguments, cwd=folder)
        assert (name, done.returncode) == ("shoal", 0), done.stderr
        printed += done.stdout
    return printed


def releases(output: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in output.splitlines() if line.startswith("{")]


class Run(NamedTuple):
    folder: Path
    again: str  # the command that reads the events: all but the new key
    releases: list[dict[str, Any]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The commands for a file, run as they stand, but for the environment's activation."""
    folder = examples(tmp_path_factory.mktemp("checkout"))
    activate, commands = block(EXAMPLES, "sh", "shoal run examples/shoal.toml").split("\n", 1)
    assert activate == ". .venv/bin/activate"
    return Run(folder, commands.split("\n", 1)[1], releases(sh(commands, folder)))


def test_the_configuration_is_that_of_the_examples() -> None:
    shown = block(EXAMPLES, "toml", "[privacy]")
    assert shown.startswith("[kafka]")
    assert (ROOT / "examples" / "shoal.toml").read_text("utf-8").endswith("\n" + shown)
    event = orjson.loads(re.findall(r'`(\{"customer".*\})`', EXAMPLES)[0])
    assert event == orjson.loads((ROOT / "examples" / "purchases.jsonl").read_bytes().splitlines()[0])


@pytest.mark.slow
def test_its_commands_for_a_file_run_and_print_what_it_shows(run: Run) -> None:
    # when the commands are run, then there are nine releases, and all of the last one but its noise is as shown
    shown, last = orjson.loads(block(EXAMPLES, "json", "noise_sd")), run.releases[-1]
    assert len(run.releases) == 9
    assert list(last) == list(shown)
    assert {name: last[name] for name in shown.keys() - NOISY} == {name: shown[name] for name in shown.keys() - NOISY}
    # and the same once more, to the byte; but not with other events
    assert releases(again(run.again, run.folder)) == run.releases
    events = run.folder / "examples" / "purchases.jsonl"
    events.write_bytes(events.read_bytes().replace(b"29.33", b"29.34"))
    with pytest.raises(AssertionError, match="two values"):
        again(run.again, run.folder)


@pytest.mark.slow
def test_the_clicks_are_counted_as_it_says(checkout: Path) -> None:
    shown = block(EXAMPLES, "toml", '"clicks-by-link"')
    of_a_link = [line.split("#")[0].split() for line in shown.splitlines()]
    file = (checkout / "examples" / "clicks.toml").read_text("utf-8")
    (metric,) = [part for part in file.split("[[metric]]") if "clicks-by-link" in part]
    assert of_a_link == [line.split("#")[0].split() for line in f"[[metric]]{metric}".splitlines()]
    # every link has a release every hour, and the noise is some ten times what was clicked
    found = releases(sh(block(EXAMPLES, "sh", "shoal run examples/clicks.toml").split("\n", 1)[1], checkout))
    by_link = [each for each in found if each["metric"] == "clicks-by-link"]
    assert [each["group"] for each in by_link] == [f"Link {number}" for number in range(1, 6)] * 4
    assert all("samples" not in each and 4 < each["noise_sd"] < 20 for each in by_link)


@pytest.mark.slow
def test_what_it_says_of_noise_is_so_in_the_example(checkout: Path) -> None:
    said = " ".join(EXAMPLES.split())
    shown = orjson.loads(block(EXAMPLES, "json", "noise_sd"))
    (stays,) = re.findall(r"stays within (\d+) dollars", said)
    assert round((shown["high"] - shown["low"]) / 2) == int(stays)
    # and that of the textbook's way, which no key changes
    config = checkout / "examples" / "shoal.toml"
    config.write_text(
        config.read_text("utf-8").replace('statistic = "mean"', 'statistic = "mean"\nalgorithm = "naive"')
    )
    found = releases(again(block(EXAMPLES, "sh", "shoal run examples/shoal.toml").split("\n", 1)[1], checkout))
    (textbook,) = re.findall(r'`algorithm = "naive"`, the textbook\'s way, it would be (\d+)', said)
    assert round((found[-1]["high"] - found[-1]["low"]) / 2) == int(textbook)


@pytest.mark.slow
def test_the_example_knows_nothing_for_as_many_days_as_it_says(run: Run) -> None:
    assert [release["samples"] for release in run.releases[:6]] == [0] * 6
    assert all(release["samples"] for release in run.releases[6:])


TABLE = re.findall(r"^\| (1997-\d\d-\d\d) \| (.*) \|$", README, re.M)
KINDS = ("new", "returning")


def test_the_first_example_is_the_average_per_category_and_day() -> None:
    # given the first configuration that the page shows, then it is the whole metric of the example
    first = re.findall(r"^```toml\n(.*?)^```$", README, re.M | re.S)[0]
    assert (ROOT / "examples" / "visits.toml").read_text("utf-8").endswith("\n" + first)
    (metric,) = load(ROOT / "examples" / "visits.toml").metric
    assert (metric.statistic, metric.group, metric.slot) == ("mean", "kind", 86_400_000_000)
    # and an event that it shows is the first of the file
    event = (ROOT / "examples" / "visits.jsonl").read_text("utf-8").splitlines()[0]
    assert block(README, "json", "kind") == event + "\n"
    # and a line of its own says what a mean with a cadence is
    assert '**`statistic = "mean"` with `every` is different: it is the mean since the beginning**' in README


@pytest.mark.slow
def test_the_table_of_the_first_example_is_what_a_run_gives(checkout: Path) -> None:
    # when the commands are typed
    typed = block(README, "console", "shoal run").replace("$ . .venv/bin/activate\n", "")
    key, run = re.sub(r"^\$ ", "", typed, flags=re.M).splitlines()
    sh(f"{key}\n{run}", checkout)
    written = (checkout / "spending.jsonl").read_bytes()
    found = {
        (release["at"], release["group"]): release for release in releases((checkout / "spending.jsonl").read_text())
    }
    assert len(found) == 2 * len(TABLE) == 14
    # then counts, which its head says are purchases, truth and the noise intervals are those of the table, and the
    # values are about as far from the truth
    events = releases((ROOT / "examples" / "visits.jsonl").read_text("ascii"))
    outside = 0
    assert (
        "\n| day | purchases by new customers | truth | released | by returning ones | truth | released |\n" in README
    )
    for day, row in TABLE:
        end = (date.fromisoformat(day) + timedelta(days=1)).isoformat()
        cells = [cell.strip() for cell in row.split("|")]
        for kind, (count, truth, released) in zip(KINDS, (cells[:3], cells[3:]), strict=True):
            amounts = [event["amount"] for event in events if (event["at"], event["kind"]) == (day, kind)]
            assert (int(count), float(truth)) == (len(amounts), round(sum(amounts) / len(amounts), 2))
            release = found[f"{end}T00:00:00Z", kind]
            value, within = map(float, released.split(" ± "))
            assert within == pytest.approx((release["high"] - release["low"]) / 2, abs=0.005)
            assert abs(value - float(truth)) < 8 * release["noise_sd"]
            outside += abs(value - float(truth)) > within
    assert f"(here {14 - outside} of 14)" in README
    # and a second run gives the same bytes; but not with other events
    again(run, checkout)
    assert (checkout / "spending.jsonl").read_bytes() == written
    file = checkout / "examples" / "visits.jsonl"
    file.write_bytes(file.read_bytes().replace(b"14.37", b"14.38", 1))
    with pytest.raises(AssertionError, match="two values"):
        again(run, checkout)


def test_its_picture_is_small_and_there() -> None:
    assert re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README) == ["docs/images/demo.png"]
    for picture in ("demo.png", "map.png"):
        assert 20_000 < (ROOT / "docs" / "images" / picture).stat().st_size < 150_000
