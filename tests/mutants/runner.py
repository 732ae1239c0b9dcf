"""Copies of the project, broken one by one, and what their tests make of it."""

import compileall
import json
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.mutants.mutant import ROOT, Mutant
from tests.mutants.witness import REPORT
from tests.support.effort import LONG, SHORT, VARIABLE

LIMIT = 600  # seconds that the tests of one mutant may take
NATIVE = "native"  # the folder of a copy that has its kernel
BUILDING = threading.Lock()
NOTHING: dict[str, Any] = {"collected": [], "passed": [], "modules": {}}
PYTEST = (
    sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.witness", "--noconftest", "--assert=plain",
    "-p", "no:cacheprovider",
)  # fmt: skip
CAUGHT, SURVIVED, BROKEN = "caught", "survived", "broken"


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    outcome: str  # CAUGHT; SURVIVED; BROKEN: something failed, but no test's expectation
    by: str  # the test that caught it, or what went wrong
    seconds: float


def copy_project(to: Path) -> Path:
    """A copy of the package and its tests, compiled so that a changed file is always noticed, whatever its time."""
    for name in ("shoal", "tests", "kernel"):
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__", "target", "fuzz"))
    for name in ("pyproject.toml", "docs"):  # some tests read them
        (to / name).symlink_to(ROOT / name)
    compileall.compile_dir(to, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    return to


def build(folder: Path) -> str:
    """Build the kernel of a copy into a folder of its own; what the compiler said if it cannot.

    All copies share what is compiled of other packages, so they are built one after the other.
    """
    target = folder.parent / "target"
    with BUILDING:
        for file in (folder / "kernel" / "src").rglob("*.rs"):
            file.touch()  # another copy, with an older time, was built last
        done = subprocess.run(
            ["cargo", "build", "--quiet", "--release", "--locked", "--features", "extension-module"],
            cwd=folder / "kernel", env=os.environ | {"CARGO_TARGET_DIR": str(target)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            return done.stderr
        library = next(one for one in (target / "release").iterdir() if one.suffix in (".so", ".dylib"))
        (folder / NATIVE).mkdir()
        shutil.copy(library, folder / NATIVE / "shoal_kernel.abi3.so")
    return ""


def try_mutant(mutant: Mutant, pristine: Path, folder: Path) -> Verdict:
    """Break a copy of the pristine copy and run the tests that must notice."""
    started = time.monotonic()
    shutil.copytree(pristine, folder, symlinks=True, copy_function=os.link)
    file = folder / mutant.source
    broken = mutant.broken(file.read_text())
    file.unlink()  # it is a link
    file.write_text(broken)
    if mutant.is_native:
        shutil.rmtree(folder / NATIVE)
        told = build(folder)
        if told:
            return Verdict(mutant, BROKEN, f"it does not compile: {told}", time.monotonic() - started)
    outcome, by = SURVIVED, ""
    for tests, is_long in ((mutant.tests, False), (mutant.long, True)):
        if tests and outcome == SURVIVED:
            outcome, by = judge(mutant, run_tests(folder, tests, "-x", is_long=is_long), folder)
    shutil.rmtree(folder)
    return Verdict(mutant, outcome, by, time.monotonic() - started)


# Where lines of the twin are broken, the kernel would make the right bytes all the same; its own tests ask for it.
TWIN = {"SHOAL_KERNEL": "off"}


def run_tests(folder: Path, tests: Iterable[str], *options: str, is_long: bool = False) -> dict[str, Any]:
    """Run tests of a copy in a process of its own, and return the report of the witness.

    Tests are run as in `make test`, or as in `make test-long` if `is_long`: with its effort and the tests marked long.
    """
    with tempfile.TemporaryDirectory(prefix="shoal-mutants-") as work:
        written = Path(work) / "report.json"
        mine = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST", "PYTHON"))}
        mine |= {"PYTHONPATH": f"{folder / NATIVE}:{folder}", REPORT: str(written)}
        mine |= {VARIABLE: str(LONG if is_long else SHORT)}
        marks = ("-m", "") if is_long else ()  # else pyproject.toml deselects tests marked long
        try:
            done = subprocess.run(
                [*PYTEST, f"--basetemp={work}/tmp", *marks, *options, *(f"tests/{one}" for one in tests)],
                cwd=folder, env=mine | TWIN,
                capture_output=True, text=True, timeout=LIMIT, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return NOTHING | {"failed": [fault("timeout", f"no end within {LIMIT} seconds")]}
        told = fault("pytest", done.stdout + done.stderr)
        if not written.exists():
            return NOTHING | {"failed": [told]}
        report: dict[str, Any] = json.loads(written.read_text())
        if done.returncode not in (0, 1):  # 4: no such test
            report["failed"].append(told)
        return report


def fault(kind: str, said: str) -> dict[str, str]:
    """A failure that is no test's."""
    return {"test": "", "when": "", "kind": kind, "said": said}


def judge(mutant: Mutant, report: dict[str, Any], folder: Path) -> tuple[str, str]:
    """The outcome and the test that caught the mutant, or what is wrong."""
    strangers = [file for file in report["modules"].values() if not Path(file).is_relative_to(folder)]
    name = "shoal_kernel" if mutant.is_native else ".".join(mutant.source.with_suffix("").parts)
    for failed in report["failed"]:
        if not failed["test"] or failed["kind"] == "collection":
            return BROKEN, f"{failed['kind']}: {failed['said']}"
    if strangers:
        return BROKEN, f"another copy was imported: {strangers[0]}"
    if name not in report["modules"]:
        return BROKEN, f"no test imported {name}"
    for failed in report["failed"]:
        otherwise = mutant.otherwise and failed["when"] == "call" and mutant.otherwise in failed["said"]
        if failed["kind"] == "assertion" or otherwise:
            return CAUGHT, str(failed["test"]).removeprefix("tests/")
        return BROKEN, f"{failed['test']} ended with {failed['kind']}: {failed['said']}"
    return SURVIVED, f"{len(report['passed'])} tests passed"


def failing_anyway(wanted: Iterable[str], pristine: Path, *, is_long: bool) -> dict[str, str]:
    """Tests among `wanted` that fail without a mutant or are not collected, each with its error."""
    tests = list(dict.fromkeys(wanted))
    if not tests:
        return {}  # without a test to run, pytest would run all
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    there = set(run_tests(pristine, files, "--collect-only", is_long=is_long)["collected"])
    there |= {name.partition("[")[0] for name in there} | {f"tests/{file}" for file in files}
    absent = f"not found in the {'long' if is_long else 'short'} suite"
    found = {test: absent for test in tests if f"tests/{test}" not in there}
    present = [test for test in tests if test not in found]
    for failed in run_tests(pristine, present, is_long=is_long)["failed"] if present else ():
        name = str(failed["test"]).removeprefix("tests/")
        told = failed["said"] or failed["kind"]
        found |= {test: told for test in tests if not name or f"{name}[".startswith((f"{test}[", f"{test}::"))}
    return found
