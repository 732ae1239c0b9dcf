"""Commands that are imported when they are called or asked for help, so that no command waits for what others need."""

import gc
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

STOPPED = "shoal: stopped"


class Command(NamedTuple):
    """A command that is not imported yet."""

    function: str  # module:function
    help: str  # in a line, for the list of all commands


class Group(NamedTuple):
    """Commands under one name."""

    help: str
    commands: Mapping[str, Command]


Table = Mapping[str, Command | Group]


class Completion(NamedTuple):
    """A command that a shell may complete, as Typer's shells read it."""

    value: str
    help: str
    type: str = "plain"


class Loaded(Mapping[str, Any]):
    """The commands of a table by name, each imported when it is first looked up."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._load = cache(lambda name: command_of(table[name]))

    def __getitem__(self, name: str) -> Any:
        return self._load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


def command_of(entry: Command | Group) -> Any:
    """The command or group, imported, as Typer has it."""
    if isinstance(entry, Group):
        return typer.main.get_command(group_of(entry.commands, entry.help))
    module, _, function = entry.function.partition(":")
    alone = typer.Typer(rich_markup_mode=None, add_completion=False)
    alone.command()(getattr(_imported(module), function))
    return typer.main.get_command(alone)


def _imported(module: str) -> Any:
    """The module. Nothing that an import makes is garbage, ever: looking for some would take a third of the time."""
    gc.disable()
    try:
        return import_module(module)
    finally:
        gc.freeze()
        gc.enable()


def group_of(table: Table, words: str, name: str | None = None) -> typer.Typer:
    """A group of the commands in a table."""

    class Lazy(TyperGroup):
        def __init__(self, **attributes: Any) -> None:
            super().__init__(**attributes)
            self.commands: Any = Loaded(table)

        def invoke(self, ctx: Any) -> Any:
            try:
                return super().invoke(ctx)
            except KeyboardInterrupt:  # which Typer turns into status 130, without a word
                if ctx.parent is None:
                    print(STOPPED, file=sys.stderr, flush=True)
                raise

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            with formatter.section("Commands"):
                formatter.write_dl([(entry, table[entry].help) for entry in table])

        def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
            found = [Completion(entry, table[entry].help) for entry in table if entry.startswith(incomplete)]
            return found or super().shell_complete(ctx, incomplete)

    group = typer.Typer(
        name=name, help=words, cls=Lazy, no_args_is_help=True, add_completion=name is not None,
        pretty_exceptions_enable=False, rich_markup_mode=None,
    )  # fmt: skip
    group.callback()(lambda: None)
    return group
