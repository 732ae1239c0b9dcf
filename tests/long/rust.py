"""Tools of Rust that the long tests need, and that a machine may lack."""

import subprocess
import sys
from collections.abc import Sequence


def version_of(tool: Sequence[str], install: str) -> str:
    """What a tool says of its version; `install` says how to get it.

    Raises:
        SystemExit: it is missing, and nothing was tried.
    """
    try:
        said = subprocess.run([*tool, "--version"], capture_output=True, text=True)
    except FileNotFoundError:
        sys.exit("nothing was tried: there is no cargo; install Rust")
    if said.returncode:
        sys.exit(f"nothing was tried: {said.stderr.strip().partition(chr(10))[0]}; {install}")
    return said.stdout.strip()
