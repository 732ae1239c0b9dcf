"""Finds a file of somebody else that Python imports in place of a module that shoal needs."""

import sys
import sysconfig
import traceback
from importlib.machinery import PathFinder
from itertools import takewhile
from pathlib import Path


def shadow(error: BaseException) -> str | None:
    """Sentence about a file that hides a module and that Python ran before an error; None if there is none."""
    ran = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
    ran |= {file for module in [*sys.modules.values()] if (file := getattr(module, "__file__", None))}
    pythons = sysconfig.get_path("stdlib")
    for place, folder in enumerate(takewhile(lambda folder: folder != pythons, sys.path)):
        for file in sorted(Path(folder or ".").glob("*.py")):
            if "." in file.stem or not {str(file), str(file.absolute())} & ran:
                continue
            hidden = PathFinder.find_spec(file.stem, sys.path[place + 1 :])
            if hidden is not None and hidden.origin:
                return (
                    f"{file.absolute()} is imported in place of {hidden.origin}, which shoal needs; rename it, or take "
                    "its folder out of PYTHONPATH"
                )
    return None
