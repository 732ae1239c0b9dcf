"""Reader of the TOML files of mutants. Each mutant is a table `[family."source file"."name"]`.

Keys of a table: `old`, `new`, `breach`, `otherwise` and `quick` are fields of `Mutant`. `test` and `long` are a pytest
id or a list of pytest ids. `test` names tests of `make test` that catch the mutant, and `long` tests that catch the
mutant only in `make test-long`: they are marked long, or need its effort.
"""

import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.mutants.mutant import Mutant

FOLDER = Path(__file__).parent
REQUIRED = {"old": str, "new": str, "breach": str}
OPTIONAL = {"otherwise": str, "quick": bool}
TESTS = ("test", "long")


class Malformed(Exception):
    """A TOML file of mutants that cannot be read."""


def read_all(paths: Iterable[Path]) -> tuple[Mutant, ...]:
    """Mutants of TOML files, in the order of the files.

    Raises:
        Malformed: a file is not TOML, a table has a wrong key or value, or two mutants have one name.
    """
    found: dict[str, Mutant] = {}
    for path in paths:
        for mutant in read(path):
            if mutant.name in found:
                raise Malformed(f'{path.name}: a second mutant has the name "{mutant.name}"; rename one')
            found[mutant.name] = mutant
    return tuple(found.values())


def read(path: Path) -> Iterator[Mutant]:
    """Mutants of one TOML file, in its order."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise Malformed(f"{path.name}: {error}") from error
    for family, files in items(content, path.name):
        for file, mutants in items(files, f'{path.name}, "{family}"'):
            for name, table in items(mutants, f'{path.name}, "{file}"'):
                where = f'{path.name}, mutant "{name}"'
                yield Mutant(name=name, family=family, file=file, **fields(dict(items(table, where)), where))


def items(table: object, where: str) -> Iterable[tuple[str, Any]]:
    """Items of a TOML table; `Malformed` if the value is not a table or is empty."""
    if not isinstance(table, dict) or not table:
        raise Malformed(f'{where}: is not a table of mutants; write [family."source file"."name"] above the keys')
    return table.items()


def fields(table: dict[str, Any], where: str) -> dict[str, Any]:
    """Fields of a `Mutant` from the keys of its table."""
    allowed = REQUIRED | OPTIONAL
    if unknown := sorted(table.keys() - allowed.keys() - set(TESTS)):
        raise Malformed(f"{where}: the key {unknown[0]} is unknown; use {', '.join([*allowed, *TESTS])}")
    if missing := [key for key in REQUIRED if key not in table]:
        raise Malformed(f"{where}: the key {missing[0]} is missing; add it")
    if not table.keys() & set(TESTS):
        raise Malformed(f"{where}: no test is named; add the key test or long")
    for key, kind in allowed.items():
        if key in table and type(table[key]) is not kind:
            raise Malformed(f"{where}: the value of {key} is not a {kind.__name__}; change it")
    plain = {key: value for key, value in table.items() if key in allowed}
    return plain | {"tests": ids(table, "test", where), "long": ids(table, "long", where)}


def ids(table: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    """Pytest ids under `key`, which has a string or a list of strings; empty if the key is absent."""
    value = table.get(key)
    if value is None:
        return ()
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found or not all(isinstance(one, str) and one for one in found):
        raise Malformed(f"{where}: the value of {key} is not a pytest id or a list of pytest ids; change it")
    return tuple(found)
