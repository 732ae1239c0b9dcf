"""Tests of the kernel are collected where it is installed, which `make test` sees to wherever there is Rust."""

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from shoal.agents.process_settings import KERNEL, ON

collect_ignore_glob = [] if find_spec("shoal_kernel") else ["test_*.py"]


@pytest.fixture(autouse=True, scope="module")
def asked_for() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv(KERNEL, ON)
        yield
