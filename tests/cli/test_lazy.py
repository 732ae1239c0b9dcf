"""Commands are imported when they are called: whoever asks for a list of them waits for none."""

import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

import pytest
from typer.testing import CliRunner

from shoal.agents.cli.lazy import Command, Group, Table
from shoal.agents.cli.main import COMMANDS, app

HEAVY = ("aiohttp", "aiokafka", "alembic", "faust", "h3", "matplotlib", "numpy", "pydantic", "sqlalchemy")
LOADED = "import sys; from shoal.agents.cli.main import app; app(standalone_mode=False); print(*sys.modules)"
LINE = 80


def each(table: Table, *before: str) -> Iterator[tuple[tuple[str, ...], Command]]:
    for name, entry in table.items():
        if isinstance(entry, Group):
            yield from each(entry.commands, *before, name)
        else:
            yield (*before, name), entry


def loaded(*arguments: str) -> set[str]:
    """The modules of a process that was asked for help."""
    command = [sys.executable, "-c", LOADED, *arguments, "--help"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1].split())


def test_the_list_of_commands_imports_none_of_them():
    modules = loaded()
    assert len(modules) < 250
    assert not modules.intersection(HEAVY)


def test_a_key_is_made_without_what_other_commands_need():
    assert not loaded("key", "new").intersection({*HEAVY} - {"pydantic"})


@pytest.mark.slow
def test_a_file_is_run_without_what_speaks_to_kafka():
    assert not loaded("run").intersection({"aiokafka", "faust"})


@pytest.mark.parametrize(("path", "command"), list(each(COMMANDS)), ids=lambda part: " ".join(part[:1]))
def test_every_command_of_the_list_is_there_and_fits_its_line(path, command):
    module, _, function = command.function.partition(":")
    assert inspect.getdoc(getattr(import_module(module), function))
    shown = CliRunner().invoke(app, [*path[:-1], "--help"]).output
    line = next(line for line in shown.splitlines() if line.split()[:1] == [path[-1]])
    assert line.endswith(command.help)
    assert len(line) < LINE


def test_a_command_that_does_not_exist_is_answered_with_those_like_it():
    answer = CliRunner().invoke(app, ["audit", "reply"])
    assert answer.exit_code == 2
    assert "Did you mean 'replay'?" in answer.output
