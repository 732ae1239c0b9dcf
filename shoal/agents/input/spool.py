"""Copies input that can be read only once, such as standard input, to a file: a run reads its input twice.

The file has no name, so that nothing of the input stays on disk, however the run ends.
"""

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile, gettempdir

from shoal.models.errors import InputError


@contextmanager
def spooled(path: str) -> Iterator[str]:
    """Path under which the bytes of an input can be read twice, until the context ends.

    Raises:
        InputError: there is no room for the copy.
    """
    if path != "-" and not _is_pipe(Path(path)):
        yield path
        return
    if path == "-" and sys.stdin is None:
        raise InputError("standard input is closed; name a file, or send the events into a pipe")
    with TemporaryFile() as copy:  # its mode is 0600
        try:
            if path == "-":
                shutil.copyfileobj(sys.stdin.buffer, copy)
            else:
                with Path(path).open("rb") as pipe:
                    shutil.copyfileobj(pipe, copy)
            copy.flush()
        except OSError as error:
            raise InputError(
                f"{path}: cannot be copied to {gettempdir()} ({error.strerror}); make room there, or name "
                "another folder in TMPDIR"
            ) from None
        yield f"/dev/fd/{copy.fileno()}"


def _is_pipe(path: Path) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False  # the error comes when it is opened
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)
