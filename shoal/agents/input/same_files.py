"""No file has two uses: what a command writes is no file that must survive it, and no other output.

A command says in one call of `refuse_same` what it writes and what has to be there afterwards: its inputs, and the
files of its deployment.
"""

import os
import stat
import sys
from collections.abc import Mapping
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from shoal.models.errors import InputError

if TYPE_CHECKING:  # a file of releases is read without it
    from shoal.models.config.file import Config

Named = Mapping[str, str | Path | None]  # what a message calls a file -> its path, if there is one
SIDES = ("", "-wal", "-shm", "-journal")  # SQLite's own files


def refuse_same(written: Named, kept: Named) -> None:
    """Compare by path, symbolic link and hard link; `-` is stdout where it is written, and stdin where it is kept.

    Raises:
        InputError: an output is a file that must survive, or another output.
    """
    outputs = {name: _identity(str(path), sys.stdout) for name, path in written.items() if path is not None}
    others = {name: _identity(str(path), sys.stdin) for name, path in kept.items() if path is not None}
    pairs = [*product(outputs.items(), others.items()), *combinations(outputs.items(), 2)]
    for (name, identity), (other_name, other) in pairs:
        if identity is not None and identity == other:
            raise InputError(f"{name} and {other_name} are one file; write to another one, for this one would be lost")


def deployment_files(config_path: Path, config: "Config") -> dict[str, str]:
    """All that a deployment loses its past or its access with."""
    return config_files(config_path, config) | log_files(config.audit.url)


def config_files(config_path: Path, config: "Config") -> dict[str, str]:
    """A configuration, and the files that it names; without the audit log, which a run writes itself."""
    key = Path(config.privacy.key_file).resolve()
    files = {"the configuration": config_path, "the key file": key, "the key's record of use": f"{key}.used"}
    secrets = ("sasl_password_file", "ssl_cafile", "ssl_certfile", "ssl_keyfile")
    files |= {name: path for name in secrets if (path := getattr(config.kafka, name)) is not None}
    return {name: str(path) for name, path in files.items()}


def log_files(url: str | None) -> dict[str, str]:
    """The files of an audit log in SQLite; none of another database."""
    scheme, _, path = (url or "").partition(":///")
    if not scheme.startswith("sqlite"):
        return {}
    return {f"the audit log{side}": path.partition("?")[0] + side for side in SIDES}


def _identity(path: str, stream: TextIO | None) -> object:
    """Equal for names of one file; None for a terminal, a pipe or the like."""
    if path == "-" and stream is None:  # it was closed before the command began
        return None
    try:
        status = os.fstat(stream.fileno()) if path == "-" and stream is not None else os.stat(path)
    except (OSError, ValueError):  # there is none yet, or a stream without a file
        return None if path == "-" else os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
