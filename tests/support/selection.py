"""Test files that changed files can affect: by imports, by names in strings, by rules for files that all tests need.

A Python file affects the test files that import it. Any other file affects whoever names it: by its file name, by a
folder of its path, or by a pattern such as `docs/**/*.md`. A Python file may be named, too: some tests read sources.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from tests.support.import_graph import ROOT_CONFTEST, Graph, is_test
from tests.support.source_facts import ASKS, COPIES, JOINS, KERNEL, ROOTS, WHOLE, read_facts

LOCKS = {f"requirements/{name}.lock" for name in ("core", "geo", "demo", "postgres", "test")}
FOR_ALL = {"pyproject.toml", "Makefile", "tests/__init__.py"} | LOCKS
OF_PAGES = ("tests/docs/", "tests/test_docs.py", "tests/test_documents.py", "tests/test_readme.py")
OF_LINKS = {"tests/test_docs.py", "tests/test_documents.py"}  # pages name files, which must exist
OF_BLOCKS = "tests/docs/test_blocks.py"
TESTED_BY = re.compile(r"<!-- tested by: (\S+) -->")  # a comment in a page; OF_BLOCKS reads the file that it names
OF_KERNEL = "tests/stream/kernel/"
BACKEND = "backend"  # fixture: a test of both backends
BROKERS = {"kafka", "demo", "shown", "half_way"}  # fixtures, as in tests/conftest.py
APP_OR_FOLDER = {"shoal", "tests"}  # words that rarely name a folder; what reads only parts of it says more


class Selection(NamedTuple):
    """Test files to run, and what each changed file adds to them."""

    tests: list[str]
    of: int  # all test files
    reasons: dict[str, set[str]]  # changed file -> test files
    with_broker: list[str]  # of `tests`: those with a test that needs a broker


class Project:
    """Files of a checkout, as paths relative to its root, and who depends on them."""

    def __init__(
        self, root: Path, paths: Iterable[str], deleted: Iterable[str] = (), store: Path | None = None
    ) -> None:
        self.root, self.deleted = root, frozenset(deleted)
        present = {path for path in paths if (root / path).is_file()}
        sources = [path for path in sorted(present) if path.endswith(".py") and path.split("/")[0] in ROOTS]
        self.facts = read_facts(root, sources, store)
        self.graph = Graph(self.facts, {*sources, *self.deleted})
        self.pages = sorted(path for path in present if path.endswith(".md"))
        self._found_bases: dict[str, set[str]] = {}
        self.tests = {path for path in sources if is_test(path)}

    def select(self, changed: Iterable[str]) -> Selection:
        """Test files that some changed files can affect."""
        reasons = {path: self.affected(path) for path in changed}
        tests = sorted(set[str]().union(*reasons.values()))
        return Selection(tests, len(self.tests), reasons, [test for test in tests if self.needs_broker(test)])

    def affected(self, path: str) -> set[str]:
        """Test files that one changed, new or deleted file can affect."""
        if path in self.for_all:
            return self.tests
        starts = {path} | self.namers(path)
        if path.startswith("kernel/"):
            starts |= self.kernel_tests
        if path.startswith("docs/") and path.endswith(".md"):
            starts |= {test for test in self.tests if test.startswith(OF_PAGES)}
        if path in self.deleted:
            starts |= OF_LINKS
        if path in self.named_in_pages:
            starts.add(OF_BLOCKS)
        return self.graph.reaching(starts) & self.tests

    def needs_broker(self, test: str) -> bool:
        """Whether a test file asks for a broker."""
        facts = self.facts.get(test)
        return test.startswith("tests/kafka/") or bool(facts and BROKERS & facts.parameters)

    @cached_property
    def for_all(self) -> set[str]:
        """Files that every test needs: those of FOR_ALL, the first conftest.py, and what it imports of tests/."""
        return FOR_ALL | {path for path in self.graph.reached([ROOT_CONFTEST], "tests/") if path.startswith("tests/")}

    @cached_property
    def named_in_pages(self) -> set[str]:
        """Files that a page names as the tests of its blocks."""
        texts = ((self.root / path).read_text("utf-8", "replace") for path in self.pages)
        return {name for text in texts for name in TESTED_BY.findall(text)}

    @cached_property
    def kernel_tests(self) -> set[str]:
        """Files of tests that use the kernel by its name, or ask for both backends."""
        return {
            path
            for path, facts in self.facts.items()
            if not path.startswith("shoal/")
            and path != ROOT_CONFTEST
            and (path.startswith(OF_KERNEL) or BACKEND in facts.parameters or KERNEL in facts.marks)
        }

    def namers(self, path: str) -> set[str]:
        """Python files with a string that names a file, a folder of it, or a pattern that it matches.

        A string counts if it leads to the file from the root, from a folder above the Python file that has it, or from
        the folder of a module that this file imports.
        """
        parts, found = PurePosixPath(path).parts, set[str]()
        is_source = path.endswith(".py") and parts[0] in ROOTS
        for start, end in combinations(range(len(parts) + 1), 2):
            name = "/".join(parts[start:end])
            is_copied = end < len(parts) and (is_source or name in APP_OR_FOLDER)
            needed = {COPIES} if is_copied else {JOINS} if WHOLE.fullmatch(name) else set()
            found |= {
                module
                for module in self._by_word.get(name, ())
                if needed <= self.facts[module].marks and "/".join(parts[:start]) in self._bases(module)
            }
        for pattern, modules in self._by_glob.items():
            for folder in _starts(parts, pattern):
                found |= {module for module in modules if self._looks_in(module, folder)}
        return found - {path}

    def _looks_in(self, module: str, folder: str) -> bool:
        """Whether a file with a pattern may apply it in a folder."""
        bases, facts = self._bases(module), self.facts[module]
        below = {str(PurePosixPath(module).parent), *(bases - {""} if ASKS in facts.marks else ())}
        if folder in bases or any(f"{folder}/".startswith(f"{base}/") for base in below):
            return True
        parts = folder.split("/")
        return any(
            "/".join(parts[:start]) in bases and "/".join(parts[start:end]) in facts.words
            for start, end in combinations(range(len(parts) + 1), 2)
        )

    def _bases(self, module: str) -> set[str]:
        """Folders from which a file may join paths; a file of the product knows only folders of the product."""
        if module not in self._found_bases:
            paths = [PurePosixPath(module), *map(PurePosixPath, self.graph.imports[module])]
            above = len(paths) if ASKS in self.facts[module].marks else 1
            folders = {str(path.parent) for path in paths}
            folders |= {str(folder) for path in paths[:above] for folder in path.parents}
            if module.startswith("shoal/"):
                folders = {folder for folder in folders if folder.split("/")[0] == "shoal"}
            self._found_bases[module] = {folder.removeprefix(".") for folder in folders}
        return self._found_bases[module]

    @cached_property
    def _by_word(self) -> Mapping[str, set[str]]:
        found = defaultdict(set)
        for path, facts in self.facts.items():
            for word in facts.words:
                found[word.removeprefix("./")].add(path)
        return found

    @cached_property
    def _by_glob(self) -> Mapping[str, set[str]]:
        found = defaultdict(set)
        for path, facts in self.facts.items():
            for word in facts.globs:
                found[word].add(path)
        return found


def _starts(parts: tuple[str, ...], pattern: str) -> Iterator[str]:
    """Folders in which a pattern matches a path."""
    wanted = tuple(pattern.split("/"))
    yield from ("/".join(parts[:start]) for start in range(len(parts)) if _match(parts[start:], wanted))


def _match(parts: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Whether a pattern, split at its slashes, matches a path; `**` stands for any number of folders."""
    if not wanted:
        return not parts
    if wanted[0] == "**":
        return any(_match(parts[start:], wanted[1:]) for start in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], wanted[0]) and _match(parts[1:], wanted[1:])
