"""The locked versions of Python packages, with the SHA-256 of each of their files, in `requirements/`.

    python -m distribution.locks     write the locks again, with the newest versions that pyproject.toml allows

A lock holds what its extra adds to those before it, so an installation names several: `core`, `geo` and `demo` are what
`make install` takes. pip then installs only files with these hashes. Build tools of shoal itself, and of packages
without a wheel, are not locked. `wheels.lock` stands alone: it has the builders of the kernel's wheel.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from packaging.utils import canonicalize_name

from distribution import ROOT

LOCKS = ROOT / "requirements"
ORDER = ("core", "geo", "demo", "postgres", "test", "tools")  # extras, after what everyone installs
BUILDERS = "maturin\nziglang\n"
PINNED = re.compile(r"^(\S+)==(\S+)", re.MULTILINE)
# For every platform, and one version for every Python.
COMPILE = ("compile", "--quiet", "--universal", "--fork-strategy", "fewest", "--no-header", "--no-annotate")


def lock_file(name: str) -> Path:
    """The lock of what an extra adds."""
    return LOCKS / f"{name}.lock"


def locked() -> dict[str, str]:
    """The version of each package, by its canonical name."""
    texts = (lock_file(name).read_text("utf-8") for name in ORDER)
    return {canonicalize_name(name): version for text in texts for name, version in PINNED.findall(text)}


def write() -> None:
    """Resolve all of it at once, and give each package to the first lock that needs it."""
    extras = ORDER[1:]
    everything = _compiled(extras, "--generate-hashes")
    lock_file("wheels").write_text(_uv("--generate-hashes", "-", said=BUILDERS), "utf-8")
    blocks = {found[1]: block for block in _blocks(everything) if (found := PINNED.match(block))}
    pins = LOCKS / "all.txt"
    pins.write_text(everything, "utf-8")
    written: set[str] = set()
    for number, name in enumerate(ORDER):
        wanted = {found for found, _ in PINNED.findall(_compiled(extras[:number], "--constraint", str(pins)))}
        lock_file(name).write_text("".join(blocks[one] for one in sorted(wanted - written)), "utf-8")
        written |= wanted
    pins.unlink()


def _compiled(extras: tuple[str, ...], *options: str) -> str:
    asked = [word for extra in extras for word in ("--extra", extra)]
    return _uv(*options, *asked, "pyproject.toml")


def _uv(*words: str, said: str = "") -> str:
    command = [sys.executable, "-m", "uv", "pip", *COMPILE, *words]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, input=said).stdout


def _blocks(lock: str) -> Iterator[str]:
    """A package and its hashes each."""
    return (block for block in re.split(r"^(?=\S)", lock, flags=re.MULTILINE) if block)


if __name__ == "__main__":
    write()
