"""The folder of a demo: emptied by each run, and refused if it is not a demo's.

Fails if the folder holds something else, or if another demo runs in it.
"""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from shoal.agents.audit import key_file
from shoal.models.errors import ConfigError

MARKER = ".shoal-demo"  # whatever lies beside it may be deleted
MARKED = "Made by `shoal demo`. The next demo that runs here deletes everything in this folder.\n"


@contextmanager
def made_anew(path: Path) -> Iterator[Path]:
    """An empty folder that is ours until the end of the context; its absolute path.

    Raises:
        ConfigError: it holds something else, or is in use.
    """
    folder = path.absolute()
    _refuse_foreign(folder, path)
    try:
        with _marker(folder, path) as marker:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _empty(folder)
            marker.truncate(0)
            marker.write(MARKED)
            marker.flush()
            yield folder
    except BlockingIOError:
        raise ConfigError(
            f"{path}: another demo runs in this folder; wait for it, or name another with --out"
        ) from None


def _marker(folder: Path, named: Path) -> TextIO:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / MARKER).open("a+", encoding="utf-8")
    except OSError as error:
        raise _unusable(named, error) from error


def _unusable(named: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{named}: cannot be used as the demo's folder ({error.strerror}); name another with --out")


def _refuse_foreign(folder: Path, named: Path) -> None:
    try:
        foreign = folder.exists() and not (folder / MARKER).is_file() and any(folder.iterdir())
    except NotADirectoryError:
        foreign = True
    except OSError as error:
        raise _unusable(named, error) from error
    if foreign:
        raise ConfigError(f"{named}: exists and is not the folder of a demo, it is left alone; name another with --out")


def _empty(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.name == MARKER:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def write_config(folder: Path, text: str) -> Path:
    """A new key, and the configuration that names it."""
    key_file.new(folder / "shoal.key")
    config = folder / "shoal.toml"
    config.write_text(text, "utf-8")
    return config
