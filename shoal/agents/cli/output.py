"""How commands speak: results on stdout, as JSON with `--json`; progress and remarks on stderr."""

import errno
import io
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import orjson
import typer

from shoal.agents.audit import key_file
from shoal.models.errors import InputError, LedgerError
from shoal.models.printable import printable_lines

REPORT_EVERY = 10.0  # seconds
SQLITE_HEAD = b"SQLite format 3\0"

ConfigPath = Annotated[Path, typer.Argument(metavar="CONFIG", help="The configuration, a TOML file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def say(text: str) -> None:
    """Print a remark on stderr, without control characters."""
    print(printable_lines(text), file=sys.stderr, flush=True)


def show(text: str) -> None:
    """Print lines of a result on stdout, without control characters."""
    print(printable_lines(text), flush=True)


def result(fields: dict[str, Any], *, as_json: bool, text: Callable[[], str], to_stderr: bool = False) -> None:
    """Print a command's result, for a program or for a person."""
    (say if to_stderr else show)(orjson.dumps(fields, default=str).decode() if as_json else text())


def confirm(question: str, *, yes: bool) -> None:
    """Ask on the terminal, unless `yes`.

    Raises:
        LedgerError: standard input is no terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise LedgerError("nothing is written: there is no terminal to ask on; add --yes")
    typer.confirm(question, abort=True, err=True)


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal's stderr, elsewhere a line every ten seconds; call it with what is done."""
    if not sys.stderr.isatty():
        yield _report_in_lines(label, total)
        return
    from rich.console import Console  # only a terminal needs it
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeRemainingColumn(),
        console=Console(stderr=True, highlight=False, soft_wrap=True), transient=True, disable=total is None,
    )  # fmt: skip
    with bar:
        task = bar.add_task(label, total=total)
        yield lambda done: bar.update(task, completed=done)


def _report_in_lines(label: str, total: int | None) -> Callable[[int], None]:
    reported = time.monotonic()

    def advance(done: int) -> None:
        nonlocal reported
        now = time.monotonic()
        if now - reported >= REPORT_EVERY:
            reported = now
            say(f"shoal: {label}: {f'{100 * done / total:.0f} %' if total else f'{done:,}'}")

    return advance


def refuse_packed(**paths: str | Path | None) -> None:
    """Refuse names that promise compression: all is written plain, and a reader would take the name's word.

    Raises:
        BadParameter: an option names such a file; its keyword is the option's name.
    """
    for option, path in paths.items():
        if path is not None and str(path).lower().endswith(".gz"):
            hint = f"--{option.replace('_', '-')}"
            raise typer.BadParameter("nothing is packed here; write it plain, and run gzip FILE", param_hint=hint)


def open_output(files: ExitStack, path: str, *, private: bool = False) -> BinaryIO:
    """What a command writes its lines to: a file, or with "-" stdout.

    A file appears when `files` is left in order; until then, and if the command fails, what was there stays whole.

    private: the file holds raw events; a new one is for this user alone, whatever the umask is.

    Raises:
        InputError: the file cannot be written, or is a key or a database, which must not be lost.
    """
    if path == "-":
        if sys.stdout is None:
            raise InputError("standard output is closed; name a file")
        return sys.stdout.buffer
    if not path:
        raise InputError("an output has an empty name; name a file, or - for stdout")
    try:
        _refuse_precious(path)
        in_its_place = _replaced(os.path.realpath(path), private) if _is_new_or_file(path) else Path(path).open("wb")
        return files.enter_context(in_its_place)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose another place") from None


def open_lines(files: ExitStack, path: str, *, private: bool = False) -> BinaryIO:
    """The output of a command that writes lines of text: a file as `open_output` makes it, or with "-" stdout.

    Standard output gets no control character of a text from data: what follows a pipe is often a terminal.

    Raises:
        InputError: as `open_output` does.
    """
    file = open_output(files, path, private=private)
    return cast(BinaryIO, PrintableFile(file)) if path == "-" else file


class PrintableFile(io.BufferedIOBase):
    """Standard output that takes whole lines of UTF-8, and escapes their control and other invisible characters."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, lines: Any, /) -> int:
        """Write whole lines; bytes that are not UTF-8 as a backslash, x and two digits."""
        return self._file.write(printable_lines(bytes(lines).decode("utf-8", "backslashreplace")).encode())

    def flush(self) -> None:
        """Flush standard output."""
        self._file.flush()


def _is_new_or_file(path: str | Path) -> bool:
    """Whether an output is replaced when it is whole; a device or a pipe is written to as it stands."""
    return not os.path.exists(path) or os.path.isfile(path)


def _refuse_precious(path: str) -> None:
    """Refuse to replace what nothing makes again, also where a command knows of no deployment.

    Raises:
        InputError: it is such a file.
    """
    if not os.path.isfile(path) or not os.access(path, os.R_OK):
        return
    with open(path, "rb") as file:
        head = file.read(4 * key_file.KEY_BYTES)
    if key_file.secret_in(head) is not None:
        raise InputError(f"{path}: holds a secret key, which would be lost; write to another file")
    if head.startswith(SQLITE_HEAD):
        raise InputError(f"{path}: is an SQLite database, as audit logs are, and would be lost; write to another file")


@contextmanager
def writing(*paths: str | None, then: str = "") -> Iterator[None]:
    """What is inside writes to these outputs; `then` is what else to do about a failure.

    Raises:
        InputError: one of them takes no more, say because the disk is full.
    """
    try:
        yield
    except BrokenPipeError:  # the reader has gone, and knows it
        raise
    except OSError as error:
        names = " or ".join("standard output" if path == "-" else path for path in paths if path is not None)
        raise InputError(
            f"{names}: cannot be written ({error.strerror}); make room or choose another place{then}"
        ) from None


@contextmanager
def _replaced(path: str, private: bool) -> Iterator[BinaryIO]:
    """A file written under another name beside its place, readable by this user alone, and renamed at the end."""
    if _exists(path) and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    folder, name = os.path.split(path)
    handle, part = tempfile.mkstemp(prefix=f".{name[:100]}.", suffix=".part", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        if not private or os.path.exists(path):
            os.chmod(part, _mode_of(path))
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def _exists(path: str) -> bool:
    """Whether there is a file; an `OSError` where there can be none, say because the name is too long."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    return True


def _mode_of(path: str) -> int:
    """The mode of the file that is replaced; of a new one, what the umask leaves."""
    if os.path.exists(path):
        return stat.S_IMODE(os.stat(path).st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
