"""The documents say what the code does: links lead somewhere, examples load, commands and options exist."""

import doctest
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
import yaml
from typer.testing import CliRunner

import shoal
from docs.generate import commands as commands_page
from docs.generate import configuration, contributions_table, epsilon_table, sql, topics
from shoal.agents.cli.main import app
from shoal.models.config.file import load

ROOT = Path(__file__).parent.parent
PATTERNS = ("*.md", "docs/**/*.md", "docker/**/*.md", "benchmarks/results/*.md", "shoal/mechanisms/*.md")
PAGES = sorted(page for pattern in PATTERNS for page in ROOT.glob(pattern))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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


def fences(page: Path, *languages: str) -> Iterator[str]:
    yield from (body for language, body in FENCE.findall(page.read_text()) if language in languages)


def test_the_reference_of_the_configuration_is_the_models() -> None:
    assert (ROOT / "docs/reference/configuration.md").read_text() == configuration.page(), "run: make reference"


def test_the_reference_of_topics_is_what_the_schemas_say() -> None:
    assert (ROOT / "docs/reference/topics.md").read_text() == topics.page(), "run: make reference"


def test_the_reference_of_sql_is_what_the_views_say() -> None:
    assert (ROOT / "docs/reference/sql.md").read_text() == sql.page(), "run: make reference"


def test_the_reference_of_the_commands_is_their_help() -> None:
    assert (ROOT / "docs/reference/commands.md").read_text() == commands_page.page(), "run: make reference"
    assert commands_page.page().count("\n## ") == sum(1 for _ in commands_page.found())


def test_the_tables_of_choosing_epsilon_are_what_plan_says() -> None:
    written = epsilon_table.PAGE.read_text().partition(epsilon_table.BEGIN)[2].partition(epsilon_table.END)[0]
    assert written == epsilon_table.tables(), "run: make reference"


@pytest.mark.slow
def test_the_first_lines_of_the_tables_of_caps_and_cadences_are_what_plan_says() -> None:
    shop, page = contributions_table.Shop(), contributions_table.PAGE.read_text()
    for lines in (contributions_table.by_cap(shop), contributions_table.by_cadence(shop)):
        assert f"| {' | '.join(next(lines))} |" in page, "run: make reference"


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


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_of_a_configuration_loads(text: str, tmp_path: Path) -> None:
    # given an example; a fragment shows one table, and gets the others
    said = tomllib.loads(text)
    file = tmp_path / "shoal.toml"
    file.write_text(text + ("" if "privacy" in said else PRIVACY) + ("" if "metric" in said else METRIC))
    # then it loads, with every table that it names
    config = load(file)
    assert said.keys() <= config.model_fields_set


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        path, _, anchor = target.partition("#")
        if path.startswith(("http://", "https://")):
            continue
        file = (page.parent / path) if path else page
        assert file.exists(), f"{name(page)}: {target}"
        assert not anchor or anchor in anchors(file), f"{name(page)}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    # given paths from the root, some with an asterisk, and names of modules alone, as in the proofs' `Code:` lines
    text = page.read_text()
    for path in PATH.findall(text):
        made = path.endswith(".key") or path == "docker/secrets/"  # by the page's own commands
        assert made or any(ROOT.glob(path.rstrip("/."))), f"{name(page)}: {path}"
    for module in MODULE.findall(text):
        assert module in MODULES, f"{name(page)}: {module}"


def test_every_folder_of_the_package_is_in_the_architecture() -> None:
    shown = set(PATH.findall((ROOT / "docs/explanation/architecture.md").read_text()))
    packages = {f"{file.parent.relative_to(ROOT)}/" for file in (ROOT / "shoal").rglob("*.py")}
    assert packages - {"shoal/"} <= shown


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands() -> Iterator[tuple[str, str]]:
    """Every `shoal ...` in the code of every page: whole lines of shell, and what stands between backquotes."""
    for page in PAGES:
        text = page.read_text()
        inline = re.findall(r"`([^`]+)`", FENCE.sub("", text).replace("\n", " "))
        for code in [*inline, *fences(page, "sh", "ini", "console")]:
            for found in COMMAND.findall(code.replace("\\\n", " ")):
                yield name(page), found.strip()


def test_commands_are_found() -> None:
    assert COMMAND.findall("shoal check a.toml # x\n/usr/bin/shoal key new FILE") == ["check a.toml ", "key new FILE"]
    assert {"worker", "run", "budget", "key"} <= {command.split()[0] for _, command in commands()}


@pytest.mark.parametrize(("page", "command"), sorted(set(commands())))
def test_every_command_exists_with_its_options(page: str, command: str) -> None:
    words = shlex.split(command)
    path = [word for word in words[:2] if word in names_of_commands(words[0])]
    assert path, f"{page}: there is no `shoal {words[0]}`"
    shown = CliRunner().invoke(app, [*path, "--help"])
    assert shown.exit_code == 0
    for option in (word.partition("=")[0] for word in words if word.startswith("--")):
        assert re.search(rf"^ +{option}\b", shown.output, re.MULTILINE), f"{page}: `shoal {command}`: no {option}"
    if "new" in words or path[0] == "audit":
        assert len(path) == 2, f"{page}: `shoal {command}`"


def names_of_commands(first: str) -> set[str]:
    """The command itself and, of a group, its members; nothing if there is no such command."""
    group = typer.main.get_command(app)
    found = getattr(group, "commands", {}).get(first)
    return set() if found is None else {first, *getattr(found, "commands", {})}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_what_a_page_computes_is_what_it_says(page: Path) -> None:
    # A fence that ends an example would be read as its output.
    text = FENCE.sub(lambda fence: f"{fence[2]}\n", page.read_text())
    examples = doctest.DocTestParser().get_doctest(text, {}, name(page), str(page), 0)
    assert len(examples.examples) == page.read_text().count(">>> "), "an example is not parsed; do not indent fences"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said: list[str] = []
    runner.run(examples, out=said.append)
    assert runner.failures == 0, "".join(said)
