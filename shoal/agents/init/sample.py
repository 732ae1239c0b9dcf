"""Reads the beginning of a sample, in any form that `shoal run` reads, and keeps names and forms of its fields."""

import re
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from shoal.agents.init.fields import UNREADABLE, Field, Form, fields_of, form_of
from shoal.agents.input.content import FileForm
from shoal.agents.input.event_file import CHUNK, EventFile
from shoal.models.errors import InputError
from shoal.models.events import Refusal, parse

READ = CHUNK  # records
ENDINGS = re.compile(r"(\.(jsonl|ndjson|json|csv|tsv|pb|pbf|protobuf|bin))?(\.gz)?$", re.IGNORECASE)
DATA = (Form.NUMBER, Form.TIME, *UNREADABLE)


@dataclass(frozen=True)
class Sample:
    """What is known of a sample: its name and its fields."""

    path: str
    fields: tuple[Field, ...]
    is_whole: bool  # whether all of it was read
    is_lines: bool  # JSON lines, which relation add-remove asks for

    @property
    def stem(self) -> str:
        """The file's name without its endings."""
        return ENDINGS.sub("", Path(self.path).name)

    def field(self, path: str) -> Field | None:
        """The field of this name that a configuration can name."""
        return next((field for field in self.fields if field.path == path and field.fault is None), None)


def read_sample(path: str) -> Sample:
    """Look at the first records of a file.

    Raises:
        InputError: it cannot be read, is empty, has no header, or has no record with named fields.
    """
    if path == "-":
        raise InputError("a sample is a file, for standard input has the answers; name one")
    file = EventFile(path, None)
    chunks = list(islice(file.chunks(), 2))  # a second one only tells whether there is more
    _check_header(file)
    raws = chunks[0] if chunks else []
    if not raws:
        raise InputError(f"{path}: there is no event in it; name a file that has some")
    records = [event for _, raw in raws if not isinstance(event := parse(raw), Refusal)]
    if not records:
        raise InputError(
            f"{path}: none of the first {len(raws):,} records is a JSON object with named fields; a sample has one "
            "in every line, or is a table whose first line names the columns"
        )
    fields = tuple(fields_of(records, is_table=file.form is FileForm.TABLE))
    if all(field.fault or field.form is Form.LIST for field in fields):
        raise InputError(f"{path}: no field of it can be named in a configuration: {_why(fields)}")
    return Sample(path, fields, len(chunks) == 1, _is_lines(path, file.form))


def _check_header(file: EventFile) -> None:
    """Refuse a table whose first line has data: its cells would become names, which are public."""
    if file.header is not None and any(form_of(name, is_table=True) in DATA for name in file.header):
        raise InputError(
            f"{file.path}: the first line has a number or a time, as data has; put a line with the names of the "
            "columns above it, none of them a number"
        )


def _why(fields: tuple[Field, ...]) -> str:
    faults = (field.fault for field in fields if field.fault)
    return next(faults, "its records are empty, or hold nothing but lists and deep objects")


def _is_lines(path: str, form: FileForm | None) -> bool:
    return form is FileForm.LINES and path.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson"))
