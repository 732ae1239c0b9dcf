"""Recognizes the form of a file of events by its first bytes; its name only helps.

A form says how the file is cut into events. A file of another form is refused, with its form and what to do.
"""

import csv
import re
from collections.abc import Sequence, Set
from enum import Enum, auto

import orjson

from shoal.models.errors import InputError

LOOKED_AT = 8192  # bytes
GZIP = b"\x1f\x8b"
UTF8_MARK = b"\xef\xbb\xbf"
UTF16 = "UTF-16 text; write it as UTF-8, say by `iconv -f UTF-16 -t UTF-8`"
UTF32 = "UTF-32 text; write it as UTF-8, say by `iconv -f UTF-32 -t UTF-8`"
FOREIGN = (
    (b"\xff\xfe\x00\x00", UTF32),  # before UTF-16, whose mark is half of it
    (b"\x00\x00\xfe\xff", UTF32),
    (b"\xff\xfe", UTF16),
    (b"\xfe\xff", UTF16),
    (b"PK\x03\x04", "a ZIP archive or a spreadsheet; save it as CSV"),
    (b"PAR1", "Parquet; write it as CSV or JSON lines"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd; unpack it, or pack it by gzip"),
    (b"BZh", "packed by bzip2; unpack it, or pack it by gzip"),
    (b"\xfd7zXZ", "packed by xz; unpack it, or pack it by gzip"),
)
NUMBER = rb"[\x80-\xff]{0,4}[\x00-\x7f]"  # of any length, as protobuf writes it
# A feed begins with its header, and that with a version: control characters that no text has, then a digit.
FEED = re.compile(rb"\n" + NUMBER + rb"\n[\x01-\x08][0-9]", re.DOTALL)
FEEDS = re.compile(NUMBER + FEED.pattern, re.DOTALL)
DELIMITERS = (",", ";", "\t", "|")


class FileForm(Enum):
    """How a file is cut into events."""

    LINES = auto()  # a JSON object a line
    VALUES = auto()  # JSON objects in a list, or over several lines
    TABLE = auto()  # CSV
    FEED = auto()  # messages of GTFS-realtime, one after the other
    FEEDS = auto()  # such messages, each after its length


def form_of(head: bytes, path: str, *, named: FileForm | None) -> FileForm:
    r"""The form of a file that begins so; `named` is what its name says.

    >>> form_of(b'{"a": 1}\n', "x.jsonl", named=FileForm.LINES), form_of(b'[{"a": 1},', "x.json", named=FileForm.LINES)
    (<FileForm.LINES: 1>, <FileForm.VALUES: 2>)

    Raises:
        InputError: it is nothing that can be read here.
    """
    for form, beginning in ((FileForm.FEED, FEED), (FileForm.FEEDS, FEEDS)):
        if beginning.match(head):
            return form
    for magic, what in FOREIGN:
        if head.startswith(magic):
            raise InputError(f"{path} is {what}")
    if named is FileForm.FEED and head:
        raise InputError(f"{path} is no feed of GTFS-realtime, for it does not begin as one; name another file")
    if b"\x00" in head:
        raise InputError(f"{path} is {_not_text(head)}")
    text = head.removeprefix(UTF8_MARK).lstrip()
    if named in (FileForm.TABLE, FileForm.FEED):
        return named
    if _spans_lines(text):
        return FileForm.VALUES
    is_json = named is not None or not text or text.startswith(b"{")
    return FileForm.LINES if is_json else FileForm.TABLE


def _not_text(head: bytes) -> str:
    """What a file is that begins so, with a zero byte and without a mark.

    >>> _not_text("[1".encode("utf-32-be"))[:6], _not_text("[1".encode("utf-16-be"))[:6], _not_text(bytes(9))[:6]
    ('UTF-32', 'UTF-16', 'no tex')
    """
    for size, name in ((4, UTF32), (2, UTF16)):
        first, zeros = head[:size].strip(b"\x00"), bytes(size - 1)
        if len(first) == 1 and head[:size] in (first + zeros, zeros + first):
            return name
    return "no text, for it has zero bytes: it is binary, or damaged; name another file, or copy or make it again"


def _spans_lines(text: bytes) -> bool:
    """Whether it begins with a list of events, or with an event that goes on in the next line."""
    first, _, rest = text.partition(b"\n")
    if first.strip() == b"{":
        return True
    return text.startswith(b"[") and (not rest.strip() or not _is_json(first))


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def delimiter_of(header: str, wanted: Set[str], *, usual: str) -> str:
    """What stands between the cells of a table: what makes most columns that are wanted, the usual one if in doubt.

    Where nobody said which are wanted, it is what makes most columns.

    >>> delimiter_of("u;t;v", {"u", "v"}, usual=","), delimiter_of("u", {"u", "v"}, usual=",")
    (';', ',')
    >>> delimiter_of("u;t,v;w", set(), usual=",")
    ';'
    """

    def columns(delimiter: str) -> tuple[int, bool]:
        try:
            names = next(csv.reader([header], delimiter=delimiter), [])
        except csv.Error:
            names = []
        return len(wanted & {name.strip() for name in names}) if wanted else len(names), delimiter == usual

    return max(DELIMITERS, key=columns)


def missing_columns(header: Sequence[str], needed: Set[str]) -> str | None:
    """The fault of a header that lacks needed columns; None if it has them."""
    nested = sorted(name for name in needed if "." in name)
    if nested:
        return f"a table has no nested fields, and {nested[0]!r} is one; rename the column and the field, without a dot"
    missing = sorted(needed - set(header))
    if not missing:
        return None
    names = ", ".join(repr(name) for name in missing)
    if needed & {name.strip() for name in header} > needed & set(header):
        return f"the header has blanks around the names of its columns (so it has no {names}); remove them"
    if len(missing) == len(needed):
        return f"the first line names none of the columns {names}; add a header, or correct the fields of the metrics"
    return f"the header has no column {names}; add it, or correct the field of the metric"
