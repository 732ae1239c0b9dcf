"""Standard output that says of itself when it takes no more: help, results and tables are all printed to it.

Python's own raises the same `OSError` as any file does, and whoever catches it last cannot tell what could not be
written.
"""

import io
import os
import sys
from typing import Any


class StdoutError(OSError):
    """Standard output takes no more, say because the disk is full."""


class _Stdout(io.FileIO):
    """The bytes of standard output."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:  # the reader has gone, and knows it
            raise
        except OSError as error:
            raise StdoutError(error.errno, error.strerror) from None


def watch_stdout() -> None:
    """Replace Python's standard output, if nobody has, by one that raises `StdoutError`; it is buffered alike."""
    plain = sys.stdout
    if plain is not sys.__stdout__ or plain is None:
        return
    raw = _Stdout(plain.fileno(), "wb", closefd=False)
    is_buffered = not isinstance(plain.buffer, io.RawIOBase)  # with PYTHONUNBUFFERED it is not
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw) if is_buffered else raw, encoding=plain.encoding, errors=plain.errors, newline="\n",
        line_buffering=plain.line_buffering, write_through=plain.write_through,
    )  # fmt: skip


def flush_stdout() -> None:
    """Write what is buffered, while somebody can still say that it could not be."""
    if sys.stdout is not None and not sys.stdout.closed:
        sys.stdout.flush()


def give_up_stdout() -> None:
    """Have Python not try again, when it ends, to write what could not be written."""
    try:
        flush_stdout()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
