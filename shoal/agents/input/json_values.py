"""JSON events in a list, or written over several lines: one text for each, in bounded memory."""

import codecs
import json
import re
from collections.abc import Iterator
from typing import BinaryIO

from shoal.agents.input.long_lines import LONGEST
from shoal.models.errors import InputError
from shoal.models.events import LENIENT

CHUNK = 1 << 20
BETWEEN = re.compile(r"[ \t\r\n]*")
CLOSING = ("}", "]", '"')


class JsonValues:
    """The JSON values of a file; iterate once: (number from 1, bytes)."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self._file, self._path = file, path
        # What is not UTF-8 comes out as it went in: whether it is refused is not decided here.
        self._decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
        self._text, self._place, self._number = "", 0, 0

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        self._more()
        self._text = self._text.removeprefix("\ufeff")
        in_list = self._next() == "["
        self._place += in_list
        while (character := self._next()) and not (in_list and character == "]"):
            if self._number and in_list:
                self._pass_comma(character)
            self._number += 1
            yield self._number, self._value().encode("utf-8", "surrogateescape")
        if in_list and character != "]":
            raise InputError(f"{self._path}: the list of events is cut off after record {self._number}; copy it again")
        self._place += 1
        if character and self._next():
            raise InputError(f"{self._path}: something follows the list of events; write one event a line")

    def _more(self) -> bool:
        """Read on; False at the end of the file."""
        raw = self._file.read(CHUNK)
        self._text = self._text[self._place :] + self._decode(raw, not raw)
        self._place = 0
        return bool(raw)

    def _next(self) -> str:
        """The next character that is not blank; empty at the end."""
        while True:
            blanks = BETWEEN.match(self._text, self._place)
            self._place = len(self._text) if blanks is None else blanks.end()
            if self._place < len(self._text):
                return self._text[self._place]
            if not self._more():
                return ""

    def _pass_comma(self, character: str) -> None:
        if character != ",":
            raise self._refused(self._number + 1)
        self._place += 1
        self._next()

    def _value(self) -> str:
        is_all = False
        while True:
            end = self._end()
            if end and (end < len(self._text) or self._text[end - 1] in CLOSING or is_all):
                value, self._place = self._text[self._place : end], end
                return value
            if is_all or len(self._text) - self._place > LONGEST:
                raise self._refused(self._number)
            is_all = not self._more()

    def _end(self) -> int:
        """Where the value here ends; 0 if it is incomplete, or none."""
        try:
            return LENIENT.raw_decode(self._text, self._place)[1]
        except (json.JSONDecodeError, RecursionError):
            return 0

    def _refused(self, number: int) -> InputError:
        return InputError(
            f"{self._path}: record {number} is not JSON, so nothing after it can be read; correct the file"
        )
