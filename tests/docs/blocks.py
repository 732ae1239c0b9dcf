"""Blocks of code in the documents, and what is done with each: it is run or read here, or says why it is not.

A comment right before a block, which no reader sees, says what else is done with it:

    <!-- not run: needs a cluster -->       one of REASONS; tests/docs/not_run.toml counts them
    <!-- tested by: tests/test_x.py -->     by that file, which reads the page
    <!-- saved as: metric.toml -->          by that name, for the commands that come after it

At the beginning of a page, `<!-- commands not run: ... -->` says it of all its commands and programs at once.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PATTERNS = ("*.md", "docs/**/*.md", "docker/**/*.md", "benchmarks/results/*.md", "shoal/**/*.md", "examples/**/*.md")
PAGES = sorted(page for pattern in PATTERNS for page in ROOT.glob(pattern))
REASONS = {
    "needs a cluster": "Docker, Kubernetes, systemd, or rights that only an administrator of Kafka has",
    "needs a broker": "a Kafka, and workers that go on until they are stopped",
    "needs a server": "PostgreSQL, or a program that the tests do not install",
    "needs your own files": "a configuration or events that only the reader has",
    "takes a build": "make, with an installation of its own",
}
RUN = ("sh", "console", "python")
READ = ("json", "toml", "yaml", "ini", "properties", "sql")
OUTPUT = ("", "text")  # what commands print, and drawings
BLOCK = re.compile(r"(?:^ *<!-- (.*?) -->\n+)?^( *)(```+)(\S*)[^\n]*\n(.*?)^\2\3 *$", re.MULTILINE | re.DOTALL)
WHOLE = re.compile(r"^<!-- commands not run: (.*?) -->$", re.MULTILINE)


class Block(NamedTuple):
    """A block of code."""

    page: Path
    number: int
    language: str
    body: str
    reason: str | None  # why it is not run
    tested_by: str | None  # the file that runs or reads it
    saved_as: str | None  # the file that the reader is told to write it to

    @property
    def name(self) -> str:
        return f"{self.page.relative_to(ROOT)}-{self.number}"

    @property
    def is_doctest(self) -> bool:
        return self.language == "python" and self.body.lstrip().startswith(">>> ")

    @property
    def is_run_here(self) -> bool:
        return self.language in RUN and not (self.is_doctest or self.reason or self.tested_by)


def blocks(page: Path) -> Iterator[Block]:
    """All blocks of a page, in order."""
    text = page.read_text("utf-8")
    whole = WHOLE.search(text)
    for number, found in enumerate(BLOCK.finditer(text), 1):
        comment, indent, _, language, body = found.groups()
        kind, _, said = (comment or "").partition(": ")
        told = (said if kind == one else None for one in ("not run", "tested by", "saved as"))
        block = Block(page, number, language, re.sub(f"^{indent}", "", body, flags=re.M), *told)
        yield block._replace(reason=whole[1]) if whole and block.is_run_here else block


BLOCKS = [block for page in PAGES for block in blocks(page)]
