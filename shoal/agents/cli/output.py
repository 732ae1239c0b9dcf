"""How commands speak: results on stdout, as JSON with `--json`; progress and remarks on stderr."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from shoal.models.errors import InputError

errors = Console(stderr=True, highlight=False, soft_wrap=True)

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration, a TOML file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def say(text: str) -> None:
    """A remark, on stderr."""
    print(text, file=sys.stderr, flush=True)


def result(fields: dict[str, Any], *, as_json: bool, text: Callable[[], str], to_stderr: bool = False) -> None:
    """A command's result, for a program or for a person."""
    shown = orjson.dumps(fields, default=str).decode() if as_json else text()
    print(shown, file=sys.stderr if to_stderr else sys.stdout, flush=True)


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal's stderr, else nothing; yields a function that takes how much is done."""
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn(),
        console=errors, transient=True, disable=not sys.stderr.isatty() or total is None,
    )  # fmt: skip
    with bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, completed=done)


def open_output(files: ExitStack, path: str) -> BinaryIO:
    """What a command writes its lines to: a file, or with "-" stdout.

    Raises:
        InputError: the file cannot be written.
    """
    if path == "-":
        return sys.stdout.buffer
    try:
        return files.enter_context(Path(path).open("wb"))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another place") from None
