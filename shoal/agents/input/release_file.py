"""Files of releases: JSON lines as `shoal run` writes them, or as the releases topic has them; plain or gzipped."""

import zlib
from collections.abc import Callable, Iterator

from shoal.agents.input.event_file import opened, unreadable
from shoal.agents.input.long_lines import lines_of
from shoal.models.errors import InputError

LINES = 1_000  # between two reports of how far the file is read


def release_lines(path: str, on_bytes: Callable[[int], None] = lambda _: None) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, by their numbers; `-` is stdin.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        with opened(path) as (raw, file):
            for number, line in enumerate(lines_of(file), start=1):
                if line.strip():
                    yield number, line
                if number % LINES == 0:
                    on_bytes(raw.tell() if raw.seekable() else 0)
    except (OSError, EOFError, zlib.error) as error:
        reason, _ = unreadable(error)
        raise InputError(f"{path}: cannot be read ({reason}); name an existing file of releases") from None
