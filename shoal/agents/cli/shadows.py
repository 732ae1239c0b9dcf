"""Finds a file of somebody else that Python imports in place of a module that shoal needs."""

import sys
import sysconfig
from importlib.machinery import PathFinder
from itertools import takewhile
from pathlib import Path


def shadow() -> str | None:
    """Sentence about a file that hides a module; None if no folder before the standard library has one."""
    pythons = sysconfig.get_path("stdlib")
    for place, folder in enumerate(takewhile(lambda folder: folder != pythons, sys.path)):
        for file in sorted(Path(folder or ".").glob("*.py")):
            hidden = PathFinder.find_spec(file.stem, sys.path[place + 1 :])
            if hidden is not None and hidden.origin:
                return (
                    f"{file.absolute()} is imported in place of {hidden.origin}, which shoal needs; rename it, or take "
                    "its folder out of PYTHONPATH"
                )
    return None
