"""No file of a run may have two uses: an output must not be an input, nor another output."""

import os
import stat
import sys
from collections.abc import Mapping
from itertools import combinations, product
from pathlib import Path
from typing import TextIO

from shoal.models.config.file import Config
from shoal.models.errors import InputError

SQLITE = "sqlite:///"


def refuse_same(config_path: Path, config: Config, source: str, written: Mapping[str, str | None]) -> None:
    """Compare by path, symbolic link and hard link; `written` is option -> path.

    Raises:
        InputError: two of them are one file.
    """
    key = Path(config.privacy.key_file).resolve()
    names = {"the configuration": config_path, "the key file": key, "the key's record of use": f"{key}.used"}
    read = {"the input": _identity(source, sys.stdin)}
    read |= {name: _identity(str(path), sys.stdin) for name, path in names.items()}
    written_to = {option: _identity(path, sys.stdout) for option, path in written.items() if path is not None}
    if config.audit.url.startswith(SQLITE):
        log = config.audit.url.removeprefix(SQLITE)
        for part in ("", "-wal", "-shm", "-journal"):
            written_to[f"the audit log{part}"] = _identity(log + part, sys.stdout)
    pairs = [*product(written_to.items(), read.items()), *combinations(written_to.items(), 2)]
    for (name, identity), (other_name, other) in pairs:
        if identity is not None and identity == other:
            raise InputError(f"{name} and {other_name} are one file; write to another one, for this one would be lost")


def _identity(path: str, stream: TextIO | None) -> object:
    """Equal for names of one file; None for a terminal, a pipe or the like."""
    if path == "-" and stream is None:  # it was closed before the command began
        return None
    try:
        status = os.fstat(stream.fileno()) if path == "-" and stream is not None else os.stat(path)
    except (OSError, ValueError):  # there is none yet, or a stream without a file
        return None if path == "-" else os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
