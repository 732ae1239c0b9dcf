"""Command lines for tests in this process: Typer's tree of commands is built once for each app, not at each call."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest
import typer.testing


@contextmanager
def built_once() -> Iterator[None]:
    """Keep the commands that `CliRunner.invoke` builds within the block."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", cache(vars(typer.testing)["_get_command"]))
        yield
