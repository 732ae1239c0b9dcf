"""Facts of one Python file that its own text shows: names of modules that it imports, and strings that may name files.

Facts are read with `ast`, never by importing. Reading all files takes seconds, so facts are stored in the user's cache,
by the digest of a file's text: checkouts on one machine share them.
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
FOLDER = re.compile(r"\b[A-Z_]{2,}(\.\w+)*$")  # a constant before a slash: a folder of the checkout, not of a test
NATIVE = re.compile(r"\b(shoal_kernel|HAS_KERNEL)\b")
PLACE = re.compile(r"\w\.__(file|path)__")
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
    marks: frozenset[str]  # what else its text does: WALKS and the other names above

    @property
    def globs(self) -> list[str]:
        """Words that are patterns of paths."""
        return [word for word in self.words if GLOB.fullmatch(word)]


def facts_of(source: str, path: str) -> Facts:
    """Facts of a file from its text; `path` is relative to the root."""
    tree = ast.parse(source, path)
    reader = _Reader(tree, PurePosixPath(path))
    if "usefixtures" in source:
        for names in FIXTURES.findall(source):
            reader.parameters.update(re.findall(r"\w+", names))
    return reader.facts(set(_marks(source)))


def _marks(source: str) -> Iterator[str]:
    """Marks of a text. Plain words are looked for first: patterns alone would take as long as half of the parsing."""
    if "pkgutil" in source:
        yield WALKS
    if "copytree" in source:
        yield COPIES
    if ("shoal_kernel" in source or "HAS_KERNEL" in source) and NATIVE.search(source):
        yield KERNEL
    if "__file__" in source or any(FOLDER.search(before[-60:]) for before in source.split(" / ")[:-1]):
        yield JOINS
    if ("__file__" in source or "__path__" in source) and PLACE.search(source):
        yield ASKS


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

KEPT = 3  # times as many facts as a checkout has files: those of other checkouts and commits


def read_facts(root: Path, paths: Iterable[str], store: Path | None = None) -> dict[str, Facts]:
    """Facts of Python files by path relative to `root`. Texts that were read before are looked up in the file `store`.

    A file that cannot be parsed has no facts: ruff says why.
    """
    stored = _load(store) if store else {}
    version, found = Path(__file__).read_bytes(), dict[str, Facts]()
    keys = dict[str, str]()  # of the files in `found`
    with _without_garbage_collection():
        for path in paths:
            content = (root / path).read_bytes()
            key = hashlib.blake2b(b"\0".join([path.encode(), content, version]), digest_size=12).hexdigest()
            if key in stored:
                found[path] = Facts(*map(_as_set, stored[key]))
            else:
                with contextlib.suppress(SyntaxError, UnicodeDecodeError):
                    found[path] = facts_of(content.decode(), path)
            keys[path] = key
    if store and not stored.keys() >= {keys[path] for path in found}:
        current = {keys[path]: [*map(_as_list, facts)] for path, facts in found.items()}
        others = {key: fields for key, fields in stored.items() if key not in current}
        _save(store, others | current, KEPT * len(found))
    return found


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


def _as_set(field: Any) -> Any:
    """Field of facts as it was before JSON made a list of a set."""
    return frozenset(field) if isinstance(field, list) else field


def _as_list(field: object) -> object:
    """Field of facts as JSON can hold it."""
    return sorted(field) if isinstance(field, frozenset) else field


def _load(store: Path) -> dict[str, list[object]]:
    """Facts in a store by the key of the text, the oldest first."""
    try:
        content: dict[str, list[object]] = json.loads(store.read_bytes())
    except (OSError, ValueError):
        return {}
    return content


def _save(store: Path, facts: dict[str, list[object]], most: int) -> None:
    """Replace a store; a folder that cannot be written costs time at the next start, and no more."""
    with contextlib.suppress(OSError):
        store.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=store.parent, delete=False) as file:
            json.dump(dict([*facts.items()][-most:]), file)
        os.replace(file.name, store)
