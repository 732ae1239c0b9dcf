"""Copies input that can be read only once, such as standard input, to a file: a run reads its input twice."""

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile

from shoal.models.errors import InputError


@contextmanager
def spooled(path: str) -> Iterator[str]:
    """Where the bytes of an input can be read twice; a copy that only this user can read goes at the end.

    Raises:
        InputError: there is no room for the copy.
    """
    if path != "-" and not _is_pipe(Path(path)):
        yield path
        return
    if path == "-" and sys.stdin is None:
        raise InputError("standard input is closed; name a file, or send the events into a pipe")
    with NamedTemporaryFile(prefix="shoal-input-") as copy:  # its mode is 0600
        try:
            if path == "-":
                shutil.copyfileobj(sys.stdin.buffer, copy)
            else:
                with Path(path).open("rb") as pipe:
                    shutil.copyfileobj(pipe, copy)
            copy.flush()
        except OSError as error:
            raise InputError(
                f"{path}: cannot be copied to {Path(copy.name).parent} ({error.strerror}); make room there, or name "
                "another folder in TMPDIR"
            ) from None
        yield copy.name


def _is_pipe(path: Path) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False  # the error comes when it is opened
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)
