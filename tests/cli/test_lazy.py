"""Commands are imported when they are called: whoever asks for a list of them waits for none."""

import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module

import pytest
from typer.testing import CliRunner

from shoal.agents.cli.lazy import Command, Group, Table, group_of
from shoal.agents.cli.main import COMMANDS, app
from shoal.models.extras import MODULES

HEAVY = ("aiohttp", "aiokafka", "alembic", "faust", "h3", "matplotlib", "numpy", "pydantic", "sqlalchemy")
LOADED = "import sys; from shoal.agents.cli.main import app; app(standalone_mode=False); print(*sys.modules)"
LINE = 80
NO_BROKER = ("run", "budget", "plan", "check", "label", "verify")


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


def imported(*commands: Command) -> set[str]:
    """The modules of a process that imported the modules of commands."""
    program = (
        "import sys; from importlib import import_module; [*map(import_module, sys.argv[1:])]; print(*sys.modules)"
    )
    modules = [command.function.partition(":")[0] for command in commands]
    command = [sys.executable, "-c", program, *modules]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.slow
def test_what_asks_no_broker_waits_for_no_client():
    commands = [command for path, command in each(COMMANDS) if path[-1] in NO_BROKER]
    assert len(commands) == len(NO_BROKER)
    assert not imported(*commands).intersection({"aiokafka", "aiohttp", "alembic", "faust", "rich.progress"})


@pytest.mark.slow
def test_a_plan_of_what_is_stated_needs_no_sql():
    assert "sqlalchemy" not in loaded("plan")


@pytest.mark.slow
def test_no_command_is_imported_with_an_extra():
    """Who lacks it reads what to type, and has the help of every command."""
    modules = imported(*(command for _, command in each(COMMANDS)))
    assert "faust" in modules
    assert not modules.intersection(module for modules in MODULES.values() for module in modules)


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


def completed(words: str, shell: str = "bash") -> tuple[list[str], set[str]]:
    """What a shell offers for the last of these words, and the modules that were loaded for it."""
    environment = {
        "_SHOAL_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")),
        "_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }  # fmt: skip
    code = (
        "import atexit, sys; from shoal.agents.cli.main import app; "
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); app(prog_name='shoal')"
    )
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, check=False)
    return ran.stdout.split("\n")[:-1], set(ran.stderr.splitlines()[-1].split())


def test_a_shell_completes_commands_without_importing_them():
    offered, modules = completed("shoal ")
    assert offered == list(COMMANDS)
    assert not modules.intersection({*HEAVY} - {"pydantic"})  # which Typer itself imports
    assert completed("shoal audit rep")[0] == ["replay"]
    assert completed("shoal au", "fish")[0] == [
        "audit\tProofs and copies of what was released, and what is kept of one user."
    ]


def test_a_shell_completes_the_options_of_a_command():
    assert completed("shoal key new --h")[0] == ["--help"]
    assert "--version" in completed("shoal --")[0]


def test_the_script_of_a_shell_is_printed():
    environment = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-c", "from shoal.agents.cli.main import app; app(prog_name='shoal')"]
    ran = subprocess.run([*command, "--show-completion", "bash"], capture_output=True, text=True, env=environment)
    assert "_SHOAL_COMPLETE=complete_bash" in ran.stdout


def interrupted() -> None:
    """A command that Ctrl-C ends."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("command", [("stopping",), ("audit", "stopping")])
def test_a_command_that_is_stopped_says_so_in_one_line(command: tuple[str, ...]) -> None:
    stopping = {"stopping": Command(f"{__name__}:interrupted", "Be stopped.")}
    table: Table = {**stopping, "audit": Group("More of them.", stopping), "other": stopping["stopping"]}
    ended = CliRunner().invoke(group_of(table, "Commands."), command)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (130, "", "shoal: stopped\n")
