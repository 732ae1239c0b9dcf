"""The wheel, built, and environments in which nothing but it and what it needs is installed."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from distribution import ROOT
from distribution.locks import locked

MEGABYTE = 1_000_000


def build_wheel(folder: Path, *, root: Path = ROOT, environment: Mapping[str, str] = os.environ) -> Path:
    """The wheel of a checkout, built into a folder.

    Raises:
        RuntimeError: it cannot be built.
    """
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    _run(command, root, environment)
    (wheel,) = folder.glob("shoal-*.whl")
    return wheel


@dataclass(frozen=True)
class Environment:
    """A virtual environment that knows nothing of this checkout, and has no pip."""

    folder: Path

    @classmethod
    def with_wheel(cls, folder: Path, wheel: Path, *extras: str) -> "Environment":
        """A new one with the wheel, some of its extras, and what these need, in the locked versions."""
        made = cls(folder)
        made.run(sys.executable, "-m", "venv", "--without-pip", str(folder))
        wanted = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
        pip = (sys.executable, "-m", "pip", "--python", str(made.python), "--disable-pip-version-check")
        pins = folder / "pins.txt"  # of any extras: an installation with hashes would have to name all their packages
        pins.write_text("".join(f"{name}=={version}\n" for name, version in locked().items()), "utf-8")
        made.run(*pip, "install", "--quiet", "--constraint", str(pins), wanted)
        return made

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def shoal(self) -> Path:
        """Its command."""
        return self.folder / "bin" / "shoal"

    @property
    def site_packages(self) -> Path:
        """Where its packages are."""
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    @property
    def packages(self) -> list[Distribution]:
        """What is installed, by name."""
        return sorted(distributions(path=[str(self.site_packages)]), key=lambda package: package.name.lower())

    def run(self, *command: str, cwd: Path | None = None) -> str:
        """Run a program beside the environment, and not beside the checkout; its standard output.

        Raises:
            RuntimeError: it failed.
        """
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SHOAL_", "COV"))}
        self.folder.mkdir(parents=True, exist_ok=True)
        return _run(command, cwd or self.folder, clean)

    def megabytes(self) -> float:
        """What its packages take on the disk, with the compiled modules."""
        return size(self.site_packages.rglob("*")) / MEGABYTE

    def by_package(self) -> dict[str, float]:
        """The same by package, largest first; what is the package's by its own record."""
        sizes = {package.name: size(_files(package)) / MEGABYTE for package in self.packages}
        return dict(sorted(sizes.items(), key=lambda item: -item[1]))


def _run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=dict(environment), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def size(paths: Iterator[Path] | Sequence[Path]) -> int:
    """Bytes in files; links and folders count nothing."""
    return sum(path.stat().st_size for path in paths if path.is_file() and not path.is_symlink())


def _files(package: Distribution) -> list[Path]:
    return [Path(str(file.locate())) for file in package.files or []]
