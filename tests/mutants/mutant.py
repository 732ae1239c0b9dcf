"""What a mutant is, and how it gets into a copy of the package."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Misfit(Exception):
    """A mutant whose text is not there, or not there just once: the code moved on, the mutant must follow."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One textual change that breaks the guarantee, and the tests that must catch it."""

    name: str
    family: str
    file: str  # below shoal/; of the kernel below the root
    old: str  # occurs exactly once
    new: str
    breach: str  # what it stands for
    tests: tuple[str, ...]  # pytest ids, from tests/: the smallest selection that must fail
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
            raise Misfit(f"its text occurs {found} times in {self.source}: bring the mutant up to date")
        return text.replace(self.old, self.new)

    def check(self) -> None:
        """Raise `Misfit` if the mutant does not fit the checkout."""
        self.broken((ROOT / self.source).read_text())
        for test in self.tests:
            file, _, rest = test.partition("::")
            function = rest.rpartition("::")[2].partition("[")[0]
            path = ROOT / "tests" / file
            if not path.is_file() or f"def {function}(" not in path.read_text():
                raise Misfit(f"tests/{file} has no {function}: bring the mutant up to date")
