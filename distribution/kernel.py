"""Kernel of this checkout, installed into the environment and tested; both are done once for each state of its sources.

    python -m distribution.kernel build    put the wheel into the user's cache, unless it is there
    python -m distribution.kernel install  build, then install the wheel, unless it is installed
    python -m distribution.kernel test     run the kernel's own tests and properties, unless these sources passed before
    python -m distribution.kernel test --again  run them in any case

A state of the sources is a SHA-256 of the files below `kernel/` and of the compiler's version. The wheels are in the
user's cache, so a second checkout of the same commit does not compile the kernel.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from distribution.cache import cache

KERNEL = Path(__file__).parents[1] / "kernel"
BUILT = (
    "src", "Cargo.toml", "Cargo.lock", "pyproject.toml", "LICENSE", "THIRD-PARTY-LICENSES.txt", "shoal-kernel.cdx.json",
)  # fmt: skip
STAMP = Path(sys.prefix) / ".kernel"  # holds the digest of the installed kernel
TESTS = (
    ("--manifest-path", "kernel/Cargo.toml", "--no-default-features"),
    ("--manifest-path", "kernel/fuzz/Cargo.toml", "--locked"),
)
# Tests and properties share one folder of compiled dependencies. No debug data: a failure is read by its message.
QUICKLY = {
    "CARGO_TARGET_DIR": str(KERNEL / "target"),
    "CARGO_PROFILE_DEV_DEBUG": "0",
    "CARGO_PROFILE_DEV_OPT_LEVEL": "0",
    "CARGO_INCREMENTAL": "0",
}
CARGO = shutil.which("cargo") or ""
NO_CARGO = "there is no cargo, so no kernel is built: Python does the same, slower"


def digest(names: tuple[str, ...], kernel: Path = KERNEL) -> str:
    """SHA-256 of the named files and folders of the kernel, of the compiler and of the machine, in hexadecimal."""
    found = hashlib.sha256(f"{_compiler()} {platform.machine()} {platform.libc_ver()}".encode())
    for path in sorted(file for name in names for file in _files(kernel / name)):
        found.update(f"\n{path.relative_to(kernel)} {path.stat().st_size}\n".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def _files(path: Path) -> list[Path]:
    """The file itself, or all files below the folder but what cargo has built."""
    if path.is_file():
        return [path]
    return [file for file in path.rglob("*") if file.is_file() and "target" not in file.relative_to(path).parts[:-1]]


def _compiler() -> str:
    if not CARGO:
        return ""
    return subprocess.run([CARGO, "--version", "--verbose"], capture_output=True, text=True, check=True).stdout


def build(kernel: Path = KERNEL) -> Path:
    """Wheel of the kernel in the user's cache; it is compiled unless the cache has these sources.

    Raises:
        CalledProcessError: the kernel cannot be compiled; the compiler's errors are on stderr.
    """
    folder = cache() / "kernel" / digest(BUILT, kernel)
    if not any(folder.glob("*.whl")):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps")
            subprocess.run([*pip, "--wheel-dir", f"{made}/wheels", str(kernel)], check=True)
            shutil.rmtree(folder, ignore_errors=True)
            os.rename(f"{made}/wheels", folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def install() -> None:
    """Install the kernel of this checkout into the environment, unless it is the installed one."""
    sources = digest(BUILT)
    if STAMP.exists() and STAMP.read_text() == sources:
        return
    wheel = build()
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps")
    subprocess.run([*pip, "--force-reinstall", str(wheel)], check=True)
    STAMP.write_text(sources)


def test() -> None:
    """Run the kernel's tests, and its properties, unless these sources passed them on this machine."""
    passed = cache() / "kernel" / f"{digest(('.',))}.passed"
    if passed.exists() and "--again" not in sys.argv:
        print("tests of the kernel: passed before with these sources, so they are not repeated")
        return
    for arguments in TESTS:
        subprocess.run([CARGO, "test", "--quiet", *arguments], check=True, cwd=KERNEL.parent, env=os.environ | QUICKLY)
    passed.parent.mkdir(parents=True, exist_ok=True)
    passed.touch()


COMMANDS: dict[str, Callable[[], object]] = {"build": build, "install": install, "test": test}


def main() -> None:
    """Run the command that is named."""
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(f"usage: python -m distribution.kernel {'|'.join(COMMANDS)}")
    if not CARGO:
        print(NO_CARGO)
        return
    try:
        COMMANDS[sys.argv[1]]()
    except subprocess.CalledProcessError as error:
        sys.exit(f"the kernel failed: {' '.join(map(str, error.cmd))} ended with status {error.returncode} (see above)")


if __name__ == "__main__":
    main()
