"""Facts of one Python file that its own text shows: names of modules that it imports, and strings that may name files.

Facts are read with `ast`, never by importing. Reading all files of the project takes seconds, so facts are stored in
`.pytest_cache` until a file changes.
"""

import ast
import contextlib
import gc
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

ROOTS = ("shoal", "tests", "benchmarks", "docs", "distribution")  # folders whose Python files are in the graph
DOTTED = re.compile(rf"\b(?:{'|'.join(ROOTS)})(?:[.:]\w+)+")  # a module, or a thing in it, named in a string
TOKEN = re.compile(r"[\w.*?\[\]/-]+")
WHOLE = re.compile(r"[\w-]+")
STARTED = re.compile(r"-m shoal\b|\bbin/shoal\b")  # the command line, in a line of a shell
GLOB = re.compile(r"(?=.*[a-z])(.*/.*\*.*|.*\*.*/.*|.*\*.*\.[a-z]\w*)")  # a pattern of paths; "*/*" is of any text
WALKS, COPIES, KERNEL = "walks packages", "copies folders", "names the kernel"
JOINS, ASKS = "joins paths", "asks modules for their folder"
MARKS = {
    WALKS: re.compile("pkgutil"),
    COPIES: re.compile("copytree"),
    KERNEL: re.compile(r"\b(shoal_kernel|HAS_KERNEL)\b"),
    JOINS: re.compile(r"__file__|\b[A-Z_]{2,}(\.\w+)* / "),  # from a folder of the checkout, not from one of a test
    ASKS: re.compile(r"\w\.__(file|path)__"),
}
SILENT = {ast.Name, ast.Load, ast.Store, int, bool, str, type(None)}  # nothing below these can be an import or a string
TELLING = {ast.Constant, ast.Import, ast.ImportFrom, ast.JoinedStr, ast.If, ast.arg, ast.Expr}
FIXTURES = re.compile(r"\busefixtures\(([^)]*)\)")


class Facts(NamedTuple):
    """What a file imports and mentions. A name is dotted, and ends in a module or in a thing of one."""

    names: frozenset[str]  # that it imports
    mentions: frozenset[str]  # names in its strings, "shoal.key" and other names of files among them
    offers: dict[str, str]  # for a package with `__getattr__`: thing that it imports when asked -> name
    defines: frozenset[str]  # for a package with `__getattr__`: things that it has without an import
    is_lazy: bool  # whether the module has a function `__getattr__`
    words: frozenset[str]  # strings, or parts of strings, that may be a path or a pattern of paths
    parameters: frozenset[str]  # of functions, and names in `usefixtures`; some are fixtures
    marks: frozenset[str]  # of MARKS

    @property
    def globs(self) -> list[str]:
        """Words that are patterns of paths."""
        return [word for word in self.words if GLOB.fullmatch(word)]


def facts_of(source: str, path: str) -> Facts:
    """Facts of a file from its text; `path` is relative to the root."""
    tree = ast.parse(source, path)
    reader = _Reader(tree, PurePosixPath(path))
    for names in FIXTURES.findall(source):
        reader.parameters.update(re.findall(r"\w+", names))
    marks = {mark for mark, pattern in MARKS.items() if pattern.search(source)}
    return reader.facts(marks)


class _Reader:
    """A walk over the syntax tree of one file."""

    def __init__(self, tree: ast.Module, path: PurePosixPath) -> None:
        self.package = path.parent.parts
        self.is_lazy = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body)
        self.constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name) and isinstance(node.value.value, str)
        }
        self.names: set[str] = set()
        self.offers: dict[str, str] = {}
        self.strings: set[str] = set()
        self.parameters: set[str] = set()
        self.body = tree.body
        for node in tree.body:
            self.read(node)

    def facts(self, marks: set[str]) -> Facts:
        words, dotted = set(), set[str]()
        for text in self.strings:
            dotted.update(name.replace(":", ".") for name in DOTTED.findall(text))
            if WHOLE.fullmatch(text):
                words.add(text)
            else:
                words |= {token.strip("/") for token in TOKEN.findall(text) if not token.isalnum()}
        if ("shoal" in words and words & {"-m", "bin"}) or any(map(STARTED.search, self.strings)):
            dotted.add("shoal.__main__")
        defines = frozenset(self.defined()) if self.is_lazy else frozenset[str]()
        return Facts(
            frozenset(self.names), frozenset(dotted), self.offers, defines, self.is_lazy, frozenset(words - {""}),
            frozenset(self.parameters), frozenset(marks),
        )  # fmt: skip

    def defined(self) -> Iterator[str]:
        for node in self.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield node.name
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (target.id for target in targets if isinstance(target, ast.Name))

    def read(self, node: ast.AST) -> None:
        """Read a node and all below it; docstrings, and what only type checkers import, are left out."""
        stack: list[Any] = [node]
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind in SILENT or (kind in TELLING and not self.goes_below(node, stack)):
                continue
            # Only fields: other attributes, such as a `parent` that a library sets, can lead round in a circle.
            for value in [getattr(node, name, None) for name in kind._fields]:
                if isinstance(value, list):
                    stack += value
                else:
                    stack.append(value)

    def goes_below(self, node: ast.AST, stack: list[Any]) -> bool:
        """Keep names and strings of a node of TELLING; False if of the nodes below it only those on the stack count."""
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                self.strings.add(node.value)
            return False
        if isinstance(node, ast.Import | ast.ImportFrom):
            if not (self.is_lazy and node.col_offset):  # in a lazy package's function: it runs when asked
                self.names.update(name for name, _ in self.imported(node))
            return False
        if isinstance(node, ast.JoinedStr):
            self.strings.add("".join(map(self.text, node.values)))
            stack += [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
            return False
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            for one in node.body:
                if isinstance(one, ast.Import | ast.ImportFrom):
                    self.offers |= {thing: name for name, thing in self.imported(one)}
            stack += node.orelse
            return False
        if isinstance(node, ast.arg):
            self.parameters.add(node.arg)
        return not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))  # a docstring

    def imported(self, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
        """Full names that a statement imports, each with the name that it gets here."""
        if isinstance(node, ast.Import):
            yield from ((alias.name, alias.asname or alias.name) for alias in node.names)
            return
        above = self.package[: len(self.package) - node.level + 1] if node.level else ()
        start = ".".join([*above, *([node.module] if node.module else [])])
        yield from ((f"{start}.{alias.name}", alias.asname or alias.name) for alias in node.names)

    def text(self, part: ast.expr) -> str:
        """Text of one part of an f-string; a value that is not a constant of the module is `*`."""
        if isinstance(part, ast.Constant):
            return str(part.value)
        value = part.value if isinstance(part, ast.FormattedValue) else part
        return self.constants.get(value.id, "*") if isinstance(value, ast.Name) else "*"


def _is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name == "TYPE_CHECKING"


# ---------------------------------------------------------------- all files, with a store


_Stored = dict[str, tuple[list[int], Facts]]  # by path: size and time of the file, and its facts


def read_facts(root: Path, paths: Iterable[str], store: Path | None = None) -> dict[str, Facts]:
    """Facts of Python files by path relative to `root`. Unchanged files come from the file `store`, which is updated.

    A file that cannot be parsed has no facts: ruff says why.
    """
    version = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    before = _load(store, version) if store else {}
    after: _Stored = {}
    with _without_garbage_collection():
        for path in paths:
            about = (root / path).stat()
            state = [about.st_size, about.st_mtime_ns]
            if path in before and before[path][0] == state:
                after[path] = before[path]
                continue
            with contextlib.suppress(SyntaxError, UnicodeDecodeError):
                after[path] = state, facts_of((root / path).read_text("utf-8"), path)
    if store and after != before:
        _save(store, version, after)
    return {path: facts for path, (_, facts) in after.items()}


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Syntax trees have no cycles, but their many nodes would start collections that take most of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _load(store: Path, version: str) -> _Stored:
    try:
        content = json.loads(store.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return {
        path: (state, Facts(*map(_as_set, fields)))
        for path, (state, fields) in (content["files"] if content["version"] == version else {}).items()
    }


def _as_set(field: Any) -> Any:
    """Field of facts as it was before JSON made a list of a set."""
    return frozenset(field) if isinstance(field, list) else field


def _save(store: Path, version: str, facts: _Stored) -> None:
    files = {
        path: (state, [sorted(field) if isinstance(field, frozenset) else field for field in one])
        for path, (state, one) in facts.items()
    }
    store.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=store.parent, delete=False) as file:
        json.dump({"version": version, "files": files}, file)
    os.replace(file.name, store)
