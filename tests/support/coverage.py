"""Which lines and branches of shoal the tests reach, in processes of pytest and in workers that the nursery forks.

SlipCover writes probes into the modules as they are imported, which costs next to nothing. Each process writes down at
its end what it reached; `python -m tests.support.coverage stream=95 agents=90` adds that up and says what is missing.
Other processes that tests start are not measured.
"""

import atexit
import contextlib
import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import slipcover

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "shoal"
_VARIABLE = "SHOAL_TEST_COVERAGE"  # names the folder to write to
NEVER = 1 << 30  # times that a probe is passed in vain, after which functions of a running process would be exchanged
EXCLUDED = ["@overload", r"^\s*\.\.\.$", r": \.\.\.$"]  # beside SlipCover's own: `pragma: no cover` and TYPE_CHECKING

# What the nursery needs, so that its processes are measured; a process of pytest-xdist hands it on to nobody else.
ENVIRONMENT = {}
_folder = os.environ.get(_VARIABLE)
if _folder and "PYTEST_XDIST_WORKER" in os.environ:
    ENVIRONMENT[_VARIABLE] = os.environ.pop(_VARIABLE)


def measure() -> None:
    """Measure what this process, and what it forks, imports of shoal from here on, if a folder to write to is named.

    The processes of pytest and the nursery import this module before any of shoal's.
    """
    if not _folder:
        return
    probes = slipcover.Slipcover(branch=True, exclude_lines=[], d_miss_threshold=NEVER)
    slipcover.ImportManager(probes, slipcover.FileMatcher(sources=[PACKAGE])).__enter__()  # and it is never left
    write = _once(lambda: _write(probes, Path(_folder)))
    atexit.register(write)
    leave = os._exit

    def write_and_leave(status: int) -> NoReturn:
        write()
        leave(status)

    os._exit = write_and_leave


def _once(write: Callable[[], None]) -> Callable[[], None]:
    """It writes once in each process: in one that was forked later, too."""
    written = set()

    def write_once() -> None:
        if os.getpid() not in written:
            written.add(os.getpid())
            write()

    return write_once


def _write(probes: slipcover.Slipcover, folder: Path) -> None:
    with contextlib.chdir(ROOT):  # file names are relative to it
        files = probes.get_coverage()["files"]
    reached = {
        name: [file["executed_lines"], file["executed_branches"]]
        for name, file in files.items()
        if file["executed_lines"] or file["executed_branches"]
    }
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=f"{os.getpid()}.", suffix=".json", delete=False) as output:
        json.dump(reached, output)


# ---------------------------------------------------------------- the report


def report(folder: Path, limits: dict[str, float]) -> bool:
    """Print what is not reached in each part of the package, and tell whether each is above its limit in percent."""
    lines, branches = _reached(folder)
    probes = slipcover.Slipcover(branch=True, source=[str(PACKAGE)], exclude_also=EXCLUDED)
    with contextlib.chdir(ROOT):
        coverage = probes.get_coverage()  # of all files, none of which ran here
    enough = True
    for part, limit in limits.items():
        files = {name: file for name, file in coverage["files"].items() if name.startswith(f"shoal/{part}/")}
        for name, file in files.items():
            _move(file, "lines", lines[name])
            _move(file, "branches", branches[name])
        summary = slipcover.merge_coverage(
            {"meta": coverage["meta"], "files": files}, {"meta": coverage["meta"], "files": {}}
        )
        slipcover.print_coverage(summary, skip_covered=True, missing_width=60)
        percent = summary["summary"]["percent_covered"]
        print(f"\nshoal/{part}: {percent:.2f} % of lines and branches are reached; at least {limit:g} % must be")
        enough = enough and percent >= limit
    return enough


def _reached(folder: Path) -> tuple[dict[str, set[int]], dict[str, set[tuple[int, int]]]]:
    """The lines and branches of each file that any process reached."""
    lines: dict[str, set[int]] = defaultdict(set)
    branches: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for path in folder.glob("*.json"):
        for name, (its_lines, its_branches) in json.loads(path.read_text()).items():
            lines[name].update(its_lines)
            branches[name].update(map(tuple, its_branches))
    return lines, branches


def _move(file: dict[str, Any], kind: str, reached: set[Any]) -> None:
    """What was reached is executed, and not missing."""
    missing = file[f"missing_{kind}"]
    file[f"executed_{kind}"] = sorted(reached.intersection(missing))
    file[f"missing_{kind}"] = sorted(set(missing) - reached)


if __name__ == "__main__":
    _limits = {part: float(limit) for part, limit in (argument.split("=") for argument in sys.argv[2:])}
    sys.exit(not report(Path(sys.argv[1]), _limits))
