"""Graph of the project's files: which Python file imports which, directly or by a name in a string.

A file imports every package above itself and above a module that it imports. A package whose `__getattr__` imports on
demand, such as `shoal`, leads to what a file asks it for, or to all it offers if the file imports the package itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import PurePosixPath

from tests.support.source_facts import ROOTS, WALKS, Facts

ROOT_CONFTEST = "tests/conftest.py"


class Graph:
    """Imports between Python files, given as paths relative to the root.

    `paths` may have files that do not exist any more: an import of one still leads to it.
    """

    def __init__(self, facts: Mapping[str, Facts], paths: Iterable[str]) -> None:
        self.facts = facts
        self.paths = frozenset(path for path in paths if path.endswith(".py") and path.split("/")[0] in ROOTS)
        self._modules: dict[str, set[str]] = defaultdict(set)
        self._below: dict[str, set[str]] = defaultdict(set)  # package -> paths of all modules in it
        for path in self.paths:
            parts = PurePosixPath(path).with_suffix("").parts
            self._modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)].add(path)
            for length in range(1, len(parts)):
                self._below[".".join(parts[:length])].add(path)
        self._found: dict[str, frozenset[str]] = {}

    @cached_property
    def imports(self) -> dict[str, frozenset[str]]:
        """Files that each file imports; a test file also imports every conftest.py above it but the first."""
        return {path: self._imports(path) for path in self.paths}

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """Direct importers of each file, as paths."""
        found: dict[str, set[str]] = defaultdict(set)
        for path, imported in self.imports.items():
            for one in imported:
                found[one].add(path)
        return found

    def reached(self, start: Iterable[str], below: str = "") -> set[str]:
        """Files that some files import, directly or not, with themselves; only through files in the folder `below`."""
        return _closure(start, {path: to for path, to in self.imports.items() if path.startswith(below)})

    def reaching(self, start: Iterable[str]) -> set[str]:
        """Files that import some files, directly or not, with these files themselves."""
        return _closure(start, self.importers)

    def _imports(self, path: str) -> frozenset[str]:
        folders = [str(folder) for folder in PurePosixPath(path).parents]
        found = {f"{folder}/__init__.py" for folder in folders} & self.paths
        if is_test(path):
            found |= ({f"{folder}/conftest.py" for folder in folders} - {ROOT_CONFTEST}) & self.paths
        facts = self.facts.get(path)
        if facts:
            names = {name for name in facts.names if name.partition(".")[0] in ROOTS}
            mentions = frozenset[str]() if facts.is_lazy else facts.mentions  # they are what it offers
            found = found.union(*map(self._resolved, names), *map(self._mentioned, mentions))
            if WALKS in facts.marks:
                found = found.union(*(self._below.get(name, ()) for name in names | mentions))
        return frozenset(found - {path})

    def _resolved(self, name: str) -> frozenset[str]:
        """Files that run when a name is imported, or a thing of a module is asked for."""
        if name not in self._found:
            self._found[name] = frozenset[str]()  # ends a circle of lazy packages
            module, thing, above = self._split(name)
            self._found[name] = above | self._asked(module, thing)
        return self._found[name]

    def _mentioned(self, name: str) -> frozenset[str]:
        """Files that may run because a string has a name; none for a name of a file such as "shoal.key"."""
        module, thing, above = self._split(name)
        lazy = self._lazy(module)
        is_file = lazy and thing and not any(thing in facts.offers for facts in lazy)
        return above if is_file else self._resolved(name)

    def _split(self, name: str) -> tuple[str, str, frozenset[str]]:
        """Longest module or package that begins a name, what the name asks of it, and the files that run for both."""
        parts, found, module = name.split("."), set[str](), ""
        for length in range(1, len(parts) + 1):
            prefix = ".".join(parts[:length])
            if prefix not in self._modules and prefix not in self._below:
                break
            found |= self._modules.get(prefix, set())
            module = prefix
        return module, name[len(module) + 1 :].partition(".")[0], frozenset(found)

    def _lazy(self, module: str) -> list[Facts]:
        facts = [self.facts[path] for path in self._modules.get(module, ()) if path in self.facts]
        return [one for one in facts if one.is_lazy]

    def _asked(self, module: str, thing: str) -> set[str]:
        """Files that a module imports for one of its things; a package itself is asked for all that is in it."""
        lazy = self._lazy(module)
        offers = {key: name for facts in lazy for key, name in facts.offers.items()}
        if thing in offers:
            return set(self._resolved(offers[thing]))
        if offers and thing in ("", "*"):
            return set().union(*map(self._resolved, offers.values()))
        if any(thing in facts.defines for facts in lazy) or (thing and not lazy):
            return set()
        return self._below.get(module, set())


def is_test(path: str) -> bool:
    """Whether pytest collects a file of tests by itself."""
    return path.startswith("tests/") and PurePosixPath(path).match("test_*.py")


def _closure(start: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    found = set(start)
    to_follow = list(found)
    while to_follow:
        new = set(edges.get(to_follow.pop(), ())) - found
        found |= new
        to_follow += new
    return found
