"""Every block of code in the documents is run, read or tested elsewhere, or says why not."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import yaml

from tests.docs.blocks import BLOCKS, OUTPUT, PAGES, READ, REASONS, ROOT, RUN, Block
from tests.docs.forked import forked
from tests.support.cover import in_a_loop

COUNTED = Path(__file__).with_name("not_run.toml")
WITH_COMMANDS = [page for page in PAGES if any(block.page == page and block.is_run_here for block in BLOCKS)]
# Pages of a short run: a file run, a label, a window, `init` and schemas. Commands and options of all pages are looked
# up in tests/test_docs.py.
SHORT = (
    "docs/reference/releases.md", "docs/explanation/guarantee.md", "docs/guides/any-window.md",
    "docs/reference/input.md", "docs/reference/configuration.md",
)  # fmt: skip
SESSION = 300.0  # seconds that the commands of a page may take on a busy machine


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_every_block_has_a_language_that_is_known() -> None:
    assert {block.language for block in BLOCKS} <= {*RUN, *READ, *OUTPUT}
    # and none is missed, or two taken for one
    fences = {page: len(re.findall(r"^ *```", page.read_text("utf-8"), re.MULTILINE)) for page in PAGES}
    assert fences == {page: 2 * sum(block.page == page for block in BLOCKS) for page in PAGES}


def test_short_runs_have_pages_with_commands() -> None:
    assert {*SHORT} <= {name(page) for page in WITH_COMMANDS}


def test_what_is_not_run_is_listed_and_counted() -> None:
    """Who adds a block that nothing runs writes it down in not_run.toml, where a reviewer sees it."""
    found: dict[str, Counter[str]] = {}
    for block in BLOCKS:
        if block.reason:
            assert block.reason in REASONS, f"{block.name}: {block.reason!r} is none of {[*REASONS]}"
            found.setdefault(name(block.page), Counter())[block.reason] += 1
    assert {page: dict(reasons) for page, reasons in found.items()} == tomllib.loads(COUNTED.read_text("utf-8"))


def test_what_is_tested_elsewhere_is_read_there() -> None:
    for block in BLOCKS:
        if block.tested_by:
            test = ROOT / block.tested_by
            assert test.is_file(), f"{block.name}: {block.tested_by}"
            assert block.page.stem in test.read_text("utf-8"), f"{block.name}: {block.tested_by} does not read the page"


@in_a_loop
@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language in ("json", "yaml", "ini")], ids=lambda block: block.name
)
def test_what_programs_read_can_be_read(block: Block) -> None:
    if block.language == "json":
        try:
            assert orjson.loads(block.body)
        except orjson.JSONDecodeError:  # then each line is an object
            assert [orjson.loads(line) for line in block.body.splitlines() if line]
    elif block.language == "yaml":
        assert list(yaml.safe_load_all(block.body))
    else:
        parser = configparser.ConfigParser(strict=False)
        parser.read_string(block.body)
        assert parser.sections()


@in_a_loop
@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.language in ("sql", "properties")], ids=lambda block: block.name
)
def test_every_query_is_tested(block: Block) -> None:
    assert block.tested_by or block.reason, "what another program reads is tested with it: name the test"


def script(page: Path) -> str:
    """The commands of a page as one, for a block may name what one before it has set; its programs likewise."""
    parts, program, is_new = ["set -e -o pipefail"], "", False
    for block in (block for block in BLOCKS if block.page == page):
        if block.saved_as:
            parts.append(f"cat > '{block.saved_as}' <<'END OF FILE'\n{block.body}\nEND OF FILE")
        if not block.is_run_here:
            continue
        if block.language == "python":
            program, is_new = program + block.body, True
            continue
        body = block.body
        if block.language == "console":
            body = "\n".join(line.removeprefix("$ ") for line in body.splitlines() if line.startswith("$ "))
        parts += [*([in_python(program)] if is_new else []), f"echo '--- block {block.number}' >&2", body]
        is_new = False
    return "\n".join([*parts, *([in_python(program)] if is_new else [])])


def in_python(program: str) -> str:
    return f"python - <<'END OF PROGRAM'\n{program}\nEND OF PROGRAM"


@pytest.fixture(scope="module")
def shoal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Text of a program for scripts of pages: it runs a `shoal` command in a forked process."""
    with forked(tmp_path_factory.mktemp("shoal")) as program:
        yield program


@pytest.fixture
def checkout(tmp_path: Path, shoal: str) -> Path:
    """A folder like a fresh checkout after `make install`: examples without keys, and an environment to activate."""
    away = shutil.ignore_patterns("*.key", "*.used", "*.db*")
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=away)
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, program in (("shoal", shoal), ("python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')):
        (programs / name).write_text(program)
        (programs / name).chmod(0o755)
    (programs / "activate").write_text(f'PATH="{programs}:$PATH"\n')
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=name(page), marks=[] if name(page) in SHORT else [pytest.mark.long])
        for page in WITH_COMMANDS
    ],
)
def test_the_commands_of_a_page_run(page: Path, checkout: Path) -> None:
    # given a reader in a fresh checkout; the package is this one, wherever the environment has another
    environment = os.environ | {
        "PATH": f"{checkout}/.venv/bin{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    # when the page is typed from its beginning to its end, then every command does what it should
    commands = checkout / ".venv" / "page.sh"
    commands.write_text(script(page), "utf-8")
    done = subprocess.run(
        ["bash", commands], stdin=subprocess.DEVNULL, cwd=checkout, env=environment, capture_output=True, text=True,
        check=False, timeout=SESSION,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
