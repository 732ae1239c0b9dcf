"""Test files that the changes since the merge base can affect, printed or run: the part of `make quick` without `P`.

    python -m tests.support.impact                      print the files
    python -m tests.support.impact --base HEAD~3        count changes from there on
    python -m tests.support.impact --run -n2 -m 'not kafka'   run pytest on the files, with these arguments

Changes are all differences between the merge base and the working tree: commits, staged, unstaged and untracked files.
The merge base is the one of HEAD and `origin/main`, or of HEAD and `main` without a remote. On `main` itself, changes
that are not committed count, or the last commit if the working tree is clean.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Collection, Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from distribution.cache import cache
from tests.support.selection import Project, Selection

ROOT = Path(__file__).parents[2]
STORE = cache() / "facts.json"
MAIN = ("origin/main", "main", "HEAD")
OF_A_HOOK = {"GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_WORK_TREE"}  # set where git itself runs us
NO_TESTS = 5  # pytest's exit status where it has collected no test
SHOWN = 8  # changed files that a message names


class Unknown(Exception):
    """Changes that git cannot tell; the text says why."""


class Changes(NamedTuple):
    """Files that differ from a commit, as paths relative to the root."""

    commit: str
    paths: list[str]
    deleted: frozenset[str]  # of `paths`: those that are not there any more
    files: list[str]  # all files of the checkout that git does not ignore


def changes(root: Path, base: str = "") -> Changes:
    """Changes of a checkout since the merge base of HEAD and `base`, or of HEAD and the main branch.

    Raises:
        Unknown: git is not installed, the folder is not a repository, or the commit does not exist.
    """
    head = _git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if base and not _commit(root, base):
        raise Unknown(f"BASE: git has no commit {base!r}; give one, such as BASE=HEAD~3")
    main = base or next(filter(lambda name: _commit(root, name), MAIN))
    commit = _git(root, "merge-base", main, "HEAD")
    paths = _changed(root, commit)
    if not paths and not base and commit == head:
        commit = _commit(root, "HEAD~1") or head
        paths = _changed(root, commit)
    files = _lines(_git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"))
    return Changes(commit, paths, frozenset(path for path in paths if not (root / path).is_file()), files)


def _changed(root: Path, commit: str) -> list[str]:
    """Files of the working tree that differ from a commit; a renamed file counts under its old and its new name."""
    tracked = _git(root, "diff", "--name-only", "--no-renames", "--relative", "-z", commit)
    untracked = _git(root, "ls-files", "-z", "--others", "--exclude-standard")
    return sorted({*_lines(tracked), *_lines(untracked)})


def _commit(root: Path, name: str) -> str:
    """Id of a commit, or "" if there is none of the name."""
    try:
        return _git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    except Unknown:
        return ""


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=root, env=environment(), capture_output=True, text=True, check=True
        )
    except FileNotFoundError as error:
        raise Unknown("git is not installed") from error
    except subprocess.CalledProcessError as error:
        raise Unknown(f"git {arguments[0]}: {error.stderr.strip() or 'failed'}") from error
    return done.stdout.rstrip("\n")


def environment() -> dict[str, str]:
    """Environment in which git finds its repository by the working directory, even in a hook."""
    return {name: value for name, value in os.environ.items() if name not in OF_A_HOOK}


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\0") if line]


# ---------------------------------------------------------------- what is said and run


def told(changed: Changes, selection: Selection) -> str:
    """Lines for a terminal: how many test files are selected, because of which changed files."""
    since = f"since {changed.commit[:10]}"
    if not changed.paths:
        return f"quick: nothing changed {since}; `make test` runs all tests"
    count = f"{len(selection.tests)} of {selection.of} test files for {_number(changed.paths, 'changed file')} {since}"
    by_effect = sorted(selection.reasons.items(), key=lambda item: (-len(item[1]), item[0]))
    lines = [f"quick: {count}", *(f"  {len(tests):4} for {path}" for path, tests in by_effect[:SHOWN])]
    if len(by_effect) > SHOWN:
        lines.append(f"       and {_number(by_effect[SHOWN:], 'other file')} with no more than the last of these")
    if not selection.tests:
        lines.append("quick: no test runs, for none imports or names a changed file")
    if selection.with_broker:
        lines.append(
            f"quick: tests that need a broker are in {len(selection.with_broker)} of these; `make test` runs them"
        )
    lines.append("quick: `make quick P=mechanisms/slot` runs the tests of a folder, `make test` all tests")
    return "\n".join(lines)


def _number(things: Collection[object], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"


def left_out(tests: Iterable[str], selected: Iterable[str]) -> list[str]:
    """Options with which pytest collects only selected files of tests/, by the rules of every conftest.py."""
    kept = {*selected} | {str(folder) for test in selected for folder in PurePosixPath(test).parents}
    ignored = set()
    for test in set(tests) - kept:
        above = [str(folder) for folder in PurePosixPath(test).parents]
        ignored.add(next((folder for folder in reversed(above) if folder not in kept), test))
    return [f"--ignore={path}" for path in sorted(ignored)]


def run(project: Project, selection: Selection, arguments: list[str]) -> int:
    """Run pytest on the selected files; exit status, 0 where every test of them is deselected."""
    ignored = left_out(project.tests, selection.tests)
    status = subprocess.run([sys.executable, "-m", "pytest", *arguments, *ignored, "tests"], cwd=ROOT).returncode
    return 0 if status == NO_TESTS else status


def main() -> int:
    """Print the selected files, or run pytest on them."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.impact", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--base", default="", metavar="COMMIT", help="count changes since the merge base with it")
    parser.add_argument("--run", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="run pytest with these arguments")
    options = parser.parse_args()
    try:
        changed = changes(ROOT, options.base)
    except Unknown as error:
        sys.exit(f"quick: cannot find out what changed: {error}; or name a folder: make quick P=mechanisms/slot")
    project = Project(ROOT, changed.files, changed.deleted, STORE)
    selection = project.select(changed.paths)
    print(told(changed, selection), file=sys.stderr, flush=True)
    if options.run is None:
        print(*selection.tests, sep="\n")
    elif selection.tests:
        return run(project, selection, options.run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
