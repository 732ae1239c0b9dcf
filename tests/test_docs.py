"""The documents say what the code does: links lead somewhere, examples load, commands and options exist."""

import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer.main
import yaml
from typer.testing import CliRunner

import shoal
from docs.generate import commands as commands_page
from docs.generate import configuration, contributions_table, epsilon_table, sql, topics
from shoal.agents.cli.main import app
from shoal.mechanisms.words import number
from shoal.models.config.file import load
from tests.docs.computed import FENCE, PICTURED, wrong
from tests.support.cover import in_a_loop

ROOT = Path(__file__).parent.parent
PATTERNS = ("*.md", "docs/**/*.md", "docker/**/*.md", "benchmarks/results/*.md", "shoal/mechanisms/*.md")
PAGES = sorted(page for pattern in PATTERNS for page in ROOT.glob(pattern))
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
COMMAND = re.compile(r"(?:^|[\s`(/\"'])shoal ((?:[a-z]+(?:-[a-z]+)*)(?: [^`\n#;|&>)]*)?)")
PATH = re.compile(r"(?<![\w/.-])(?:shoal|tests|benchmarks|docs|docker|examples)/[\w./*-]*")
MODULE = re.compile(r"`([a-z_0-9]+\.py)`")
MODULES = {file.name for folder in ("shoal", "tests", "benchmarks", "docs") for file in (ROOT / folder).rglob("*.py")}

# What a fragment of a configuration is completed with.
PRIVACY = "[privacy]\nepsilon = 4.0\n"
METRIC = """
[[metric]]
name = "completed"
topic = "elsewhere"
user = "user"
value = "value"
statistic = "mean"
algorithm = "naive"
range = [0, 1]
epsilon = 1.0
max_contributions = 1
users = 1000
every = "1h"
"""


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def text_of(page: Path) -> str:
    return page.read_text("utf-8")


@cache
def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return FENCE.sub("", text_of(page))


def line(cells: Iterable[str]) -> str:
    """The end of a line of a table."""
    return f"| {' | '.join(cells)} |"


def fences(page: Path, *languages: str) -> Iterator[str]:
    yield from (body for language, body in FENCE.findall(text_of(page)) if language in languages)


def test_the_reference_of_the_configuration_is_the_models() -> None:
    assert (ROOT / "docs/reference/configuration.md").read_text() == configuration.page(), "run: make reference"


@pytest.mark.long  # a run of each golden case that the page shows a record of
def test_the_reference_of_topics_is_what_the_schemas_say() -> None:
    assert (ROOT / "docs/reference/topics.md").read_text() == topics.page(), "run: make reference"


def test_the_reference_of_topics_is_what_the_schemas_say_but_for_its_records(monkeypatch: pytest.MonkeyPatch) -> None:
    for records in ("_published", "_of_cluster"):
        monkeypatch.setattr(topics, records, lambda *kind: b"{}")
    monkeypatch.setattr(topics, "_changelog", lambda prefix: iter([(b"key", b"{}")]))
    record = re.compile(r"^```(json|text)\n.*?^```$", re.MULTILINE | re.DOTALL)
    written = record.sub("RECORD", text_of(ROOT / "docs/reference/topics.md"))
    assert written == record.sub("RECORD", topics.page()), "run: make reference"
    assert written.count("RECORD") > len(topics.RELEASES) + len(topics.ACTIVATIONS)


def test_the_reference_of_sql_is_what_the_views_say() -> None:
    assert (ROOT / "docs/reference/sql.md").read_text() == sql.page(), "run: make reference"


def test_the_reference_of_the_commands_is_their_help() -> None:
    written = (ROOT / "docs/reference/commands.md").read_text()
    assert written == commands_page.page(), "run: make reference"
    assert written.count("\n## ") == sum(1 for _ in commands_page.found())


def test_the_tables_of_choosing_epsilon_are_what_plan_says() -> None:
    written = epsilon_table.PAGE.read_text().partition(epsilon_table.BEGIN)[2].partition(epsilon_table.END)[0]
    assert written == epsilon_table.tables(), "run: make reference"


def test_the_columns_of_add_remove_in_the_tables_of_caps_and_cadences_are_what_plan_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given the purchases without a plan of them, which only columns of relation values need
    monkeypatch.setattr(contributions_table, "observed", lambda *said, **more: None)
    monkeypatch.setattr(contributions_table, "ObservedMean", SimpleNamespace(of=lambda *said: None))
    shop, page = contributions_table.Shop(), contributions_table.PAGE.read_text()
    # then each line ends with their noise and error
    for cap in contributions_table.CAPS:
        ends = [*map(number, (*shop.of_presence(cap, "1d"), shop.count_noise(cap)))]
        assert re.search(rf"^\| {cap} \|.*{re.escape(line(ends))}$", page, re.M), f"{cap}: {ends}"
    for every in contributions_table.CADENCES:
        ends = [*map(number, shop.of_presence(contributions_table.CAP, every))]
        assert re.search(rf"^\| {every} \|.*{re.escape(line(ends))}$", page, re.M), f"{every}: {ends}"


@pytest.mark.long  # a plan for every line
def test_the_tables_of_caps_and_cadences_are_what_plan_says() -> None:
    page = contributions_table.PAGE.read_text()
    written = page.partition(epsilon_table.BEGIN)[2].partition(epsilon_table.END)[0]
    assert written == contributions_table.tables(), "run: make reference"


def test_the_citation_is_of_this_version_and_license() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (cited["version"], cited["license"]) == (shoal.__version__, project["license"])


def test_every_page_is_listed_once() -> None:
    # given the home of the documents, and a list in each folder whose pages are too many for it
    docs = ROOT / "docs"
    pages = {page for page in docs.rglob("*.md") if page.name != "README.md"}
    lists = sorted(docs.rglob("README.md"))
    # then each page is in one of them, once
    listed = [(file.parent / target).resolve() for file in lists for target in LINK.findall(file.read_text())]
    assert sorted(page for page in listed if page in pages) == sorted(pages)


EXAMPLES = [
    pytest.param(file.read_text(), id=name(file))
    for file in sorted(ROOT.glob("*/*.toml"))
    if file.parent.name != "kernel"
] + [
    pytest.param(text, id=f"{name(page)}-{number}")
    for page in PAGES
    for number, text in enumerate(fences(page, "toml"))
]


@in_a_loop
@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_of_a_configuration_loads(text: str, tmp_path: Path) -> None:
    # given an example; a fragment shows one table, and gets the others
    said = tomllib.loads(text)
    file = tmp_path / "shoal.toml"
    file.write_text(text + ("" if "privacy" in said else PRIVACY) + ("" if "metric" in said else METRIC))
    # then it loads, with every table that it names
    config = load(file)
    assert said.keys() <= config.model_fields_set


@in_a_loop
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(prose(page)):
        path, _, anchor = target.partition("#")
        if path.startswith(("http://", "https://")):
            continue
        file = (page.parent / path) if path else page
        assert file.exists(), f"{name(page)}: {target}"
        assert not anchor or anchor in anchors(file), f"{name(page)}: {target}"


@in_a_loop
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    # given paths from the root, some with an asterisk, and names of modules alone, as in the proofs' `Code:` lines
    for path in PATH.findall(text_of(page)):
        made = path.endswith(".key") or path == "docker/secrets/"  # by the page's own commands
        assert made or is_there(path.rstrip("/.")), f"{name(page)}: {path}"
    for module in MODULE.findall(text_of(page)):
        assert module in MODULES, f"{name(page)}: {module}"


@cache
def is_there(path: str) -> bool:
    """Whether a path from the root, which may have asterisks, leads to a file or folder."""
    return any(ROOT.glob(path)) if "*" in path else (ROOT / path).exists()


def test_every_folder_of_the_package_is_in_the_architecture() -> None:
    shown = set(PATH.findall((ROOT / "docs/explanation/architecture.md").read_text()))
    packages = {f"{file.parent.relative_to(ROOT)}/" for file in (ROOT / "shoal").rglob("*.py")}
    assert packages - {"shoal/"} <= shown


@cache
def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands() -> Iterator[tuple[str, str]]:
    """Every `shoal ...` in the code of every page: whole lines of shell, and what stands between backquotes."""
    for page in PAGES:
        inline = re.findall(r"`([^`]+)`", prose(page).replace("\n", " "))
        for code in [*inline, *fences(page, "sh", "ini", "console")]:
            for found in COMMAND.findall(code.replace("\\\n", " ")):
                yield name(page), found.strip()


def test_commands_are_found() -> None:
    assert COMMAND.findall("shoal check a.toml # x\n/usr/bin/shoal key new FILE") == ["check a.toml ", "key new FILE"]
    assert {"worker", "run", "budget", "key"} <= {command.split()[0] for _, command in commands()}


@in_a_loop
@pytest.mark.parametrize(("page", "command"), sorted(set(commands())))
def test_every_command_exists_with_its_options(page: str, command: str) -> None:
    words = shlex.split(command)
    path = [word for word in words[:2] if word in names_of_commands(words[0])]
    assert path, f"{page}: there is no `shoal {words[0]}`"
    for option in (word.partition("=")[0] for word in words if word.startswith("--")):
        assert re.search(rf"^ +{option}\b", help_of(*path), re.MULTILINE), f"{page}: `shoal {command}`: no {option}"
    if "new" in words or path[0] == "audit":
        assert len(path) == 2, f"{page}: `shoal {command}`"


@cache
def help_of(*path: str) -> str:
    shown = CliRunner().invoke(app, [*path, "--help"])
    assert shown.exit_code == 0
    return shown.output


@cache
def names_of_commands(first: str) -> set[str]:
    """The command itself and, of a group, its members; nothing if there is no such command."""
    group = typer.main.get_command(app)
    found = getattr(group, "commands", {}).get(first)
    return set() if found is None else {first, *getattr(found, "commands", {})}


@in_a_loop
@pytest.mark.parametrize("page", [page for page in PAGES if PICTURED not in page.parents], ids=name)
def test_what_a_page_computes_is_what_it_says(page: Path) -> None:
    """Pages with pictures, whose numbers they share, are in `tests/docs/test_pictures.py`."""
    assert wrong(page) == ""
