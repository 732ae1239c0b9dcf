"""Standard error of a worker: a line that cannot be written is dropped and counted, and ends nothing.

The disk may be full, or the reader of a pipe gone. As soon as a line can be written again, one before it says how many
were lost, and why.
"""

import io
import os
import sys
import time
from typing import Any

import orjson

_lost = 0  # lines, since this process began


def lines_lost() -> int:
    """Number of log lines that this process could not write."""
    return _lost


class _Stderr(io.FileIO):
    """Bytes of standard error; each call of `write` brings whole lines."""

    def __init__(self, file: int | str) -> None:
        super().__init__(file, "wb", closefd=isinstance(file, str))
        self._unreported = 0  # lost lines not yet reported
        self._reason = ""
        self._is_cut = False  # whether the last line was written in part

    def write(self, data: Any, /) -> int:
        global _lost
        lines = bytes(data)
        try:
            if self._unreported:
                self._write_all(b"\n" * self._is_cut + self._report())
                self._unreported = 0
            self._write_all(lines)
        except (OSError, ValueError) as error:  # ValueError: the file is closed
            count = max(1, lines.count(b"\n"))
            self._unreported, _lost = self._unreported + count, _lost + count
            self._reason = getattr(error, "strerror", None) or type(error).__name__
        return len(lines)

    def _write_all(self, data: bytes) -> None:
        while data:
            written = super().write(data)
            if written is None:  # it does not block, and takes nothing now
                raise BlockingIOError(0, "it would block")
            self._is_cut = data[written - 1] != ord("\n")
            data = data[written:]

    def _report(self) -> bytes:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        fields = {"lines": self._unreported, "reason": self._reason, "event": "log_lines_lost"}
        return orjson.dumps(fields | {"timestamp": at, "level": "warning"}) + b"\n"


def drop_unwritable_lines() -> None:
    """Replace Python's own standard error by one that never raises, and a closed one by the null device."""
    plain = sys.stderr
    if plain is not sys.__stderr__:
        return
    raw = _Stderr(os.devnull if plain is None else plain.fileno())
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(raw), encoding="utf-8" if plain is None else plain.encoding, errors="backslashreplace",
        newline="\n", line_buffering=True,
    )  # fmt: skip
