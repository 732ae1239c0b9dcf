"""What a mutant is, and how it gets into a copy of the package."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
LONG_MARKS = ("pytest.mark.long", "pytest.mark.long()")


class Misfit(Exception):
    """Mutant that does not fit the code: its old text does not occur exactly once, or a test is gone or marked long."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One textual change that breaks the guarantee, and the tests that must catch it."""

    name: str
    family: str
    file: str  # below shoal/; of the kernel below the root
    old: str  # occurs exactly once
    new: str
    breach: str  # what it stands for
    tests: tuple[str, ...]  # pytest ids, from tests/: the smallest selection of `make test` that must fail
    long: tuple[str, ...] = ()  # pytest ids that catch the mutant in `make test-long`, where `tests` do not
    otherwise: str = ""  # what is said where no assertion but, say, a guard of the code ends the test
    quick: bool = False  # one of the few of its family that `make mutants ARGS=--quick` tries

    @property
    def source(self) -> Path:
        """The file, from the root of the project."""
        return Path(self.file) if self.is_native else Path("shoal", self.file)

    @property
    def is_native(self) -> bool:
        """Whether it is one of the kernel, which has to be built."""
        return self.family == "kernel"

    def broken(self, text: str) -> str:
        """The text of the file with the mutant in it.

        Raises:
            Misfit: the old text does not occur exactly once, or nothing would change.
        """
        found = text.count(self.old)
        if found != 1 or self.old == self.new:
            raise Misfit(f"its text occurs {found} times in {self.source}: update the mutant")
        return text.replace(self.old, self.new)

    def check(self) -> None:
        """Raise `Misfit` if the mutant does not fit the checkout.

        A mark of a single parameter, `pytest.param(..., marks=pytest.mark.long)`, is not noticed.
        """
        self.broken(text_of(ROOT / self.source))
        for test in (*self.tests, *self.long):
            file, _, rest = test.partition("::")
            function = rest.partition("[")[0]
            path = ROOT / "tests" / file
            functions = functions_of(path) if path.is_file() else {}
            if function not in functions:
                raise Misfit(f"tests/{file} has no {function}: update the mutant")
            if functions[function] and test in self.tests:
                raise Misfit(f"tests/{file} marks {function} long: name it under `long`, not under `test`")


@cache
def text_of(path: Path) -> str:
    """Text of a file, read once per process."""
    return path.read_text()


@cache
def functions_of(path: Path) -> dict[str, bool]:
    """Whether the source marks a function long, by its name in pytest ids (`Class::function`), for one test file.

    Functions that a class inherits are found if the base class is in the same file.
    """
    return _functions(ast.parse(text_of(path)).body, "", is_long=False)


def _functions(body: list[ast.stmt], prefix: str, *, is_long: bool) -> dict[str, bool]:
    """Functions of a module or class with their long marks; `is_long` is whether the module or class is marked long."""
    is_long = is_long or any(_pytestmark_is_long(statement) for statement in body)
    found: dict[str, bool] = {}
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            found[prefix + statement.name] = is_long or _is_marked_long(statement)
        elif isinstance(statement, ast.ClassDef):
            inside, marked = f"{prefix}{statement.name}::", is_long or _is_marked_long(statement)
            for base in [f"{ast.unparse(one)}::" for one in statement.bases]:
                inherited = {name: long for name, long in found.items() if name.startswith(base)}
                found |= {inside + name.removeprefix(base): long or marked for name, long in inherited.items()}
            found |= _functions(statement.body, inside, is_long=marked)
    return found


def _is_marked_long(definition: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether a decorator marks a function or class long."""
    return any(ast.unparse(decorator) in LONG_MARKS for decorator in definition.decorator_list)


def _pytestmark_is_long(statement: ast.stmt) -> bool:
    """Whether a statement sets `pytestmark` to the mark long, or to marks that include it."""
    if not isinstance(statement, ast.Assign) or [ast.unparse(one) for one in statement.targets] != ["pytestmark"]:
        return False
    marks = statement.value.elts if isinstance(statement.value, ast.List | ast.Tuple) else [statement.value]
    return any(ast.unparse(mark) in LONG_MARKS for mark in marks)
