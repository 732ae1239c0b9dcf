"""Lines of bounded length: of a longer one only the beginning is kept.

A line that is too long is read as its first bytes and a zero byte, which no JSON has. So it is refused as `not-json` in
both lanes, and the lines around it are read as ever. A few bytes of a gzipped file can be a line of gigabytes.
"""

from collections.abc import Iterator
from io import TextIOWrapper
from typing import BinaryIO

from shoal.models.records import MAX_DEAD_LETTER_BYTES

LONGEST = 1 << 26  # bytes of a line, of a record in a list and of a message in a feed; characters of a row in a table
PIECE = 1 << 20  # bytes that are read at a time
CUT = b"\x00"


class RowTooLong(Exception):
    """A row of a table has more than LONGEST characters."""


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Lines with their ends, as the file has them but for those that are too long."""
    while line := file.readline(LONGEST + 1):
        yield line if len(line) <= LONGEST or line.endswith(b"\n") else _cut(line, file)


def blocks_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of `lines_of`, about PIECE bytes of them at a time."""
    while block := file.read(PIECE):
        begins = block.rfind(b"\n") + 1  # the last line
        block += file.readline(LONGEST + 1 - (len(block) - begins))
        too_long = len(block) - begins > LONGEST and not block.endswith(b"\n")
        yield block[:begins] + _cut(block[begins:], file) if too_long else block


def is_cut(line: bytes) -> bool:
    """Whether a line without its end stands for one that is too long."""
    return len(line) == MAX_DEAD_LETTER_BYTES + len(CUT) and line.endswith(CUT)


def _cut(line: bytes, file: BinaryIO) -> bytes:
    """Read to the end of a line that is too long, and return what is kept of it."""
    whole = line[:MAX_DEAD_LETTER_BYTES].decode("utf-8", "ignore").encode()  # no character is cut
    kept = whole.ljust(MAX_DEAD_LETTER_BYTES)
    del line
    while (more := file.readline(PIECE)) and not more.endswith(b"\n"):
        pass
    return kept + CUT + b"\n"


class TableLines:
    """Lines of a table as texts; set `taken`, the characters of the present row, to 0 where a row ends."""

    def __init__(self, text: TextIOWrapper) -> None:
        self._text, self.taken = text, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self._text.readline(LONGEST + 1 - self.taken)
        self.taken += len(line)
        if self.taken > LONGEST:
            raise RowTooLong
        if not line:
            raise StopIteration
        return line
