"""Backends that workers and file runs of a test can use: the reference in Python, and the kernel if it is installed.

A test uses the reference unless it asks for the fixture `backend`. Where both backends matter and both would take long,
`mostly` keeps one of them in `make test`; `make test-long` runs both.
"""

import os
from importlib.util import find_spec

import pytest

VARIABLE, ON, OFF = "SHOAL_KERNEL", "on", "off"  # no import of shoal: coverage must see its first import
PYTHON, KERNEL = "python", "kernel"
HAS_KERNEL = find_spec("shoal_kernel") is not None
_FORCED = {ON: [KERNEL], OFF: [PYTHON]}.get(os.environ.get(VARIABLE, ""))
BACKENDS = _FORCED or ([PYTHON, KERNEL] if HAS_KERNEL else [PYTHON])
VALUES = {PYTHON: OFF, KERNEL: ON}


def mostly(name: str) -> pytest.MarkDecorator:
    """Mark that runs a test with backend `name` in `make test`, and with every other backend in `make test-long`."""
    short = name if name in BACKENDS else BACKENDS[0]
    params = [pytest.param(one, marks=[] if one == short else [pytest.mark.long]) for one in BACKENDS]
    return pytest.mark.parametrize("backend", params, indirect=True)
