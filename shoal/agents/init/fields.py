"""The fields of a sample: name, form, and whether most records have them. All that is ever known of a sample.

A form is what a type is, or the way in which a time is written. Two samples whose fields have the same names and forms
are the same here, whatever numbers and texts are in them: nothing that is made of a sample can tell them apart.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from shoal.agents.input.forms import COMMA, LOG_DATE, MONEY, THOUSANDS, US_DATE, ZONE_NAME
from shoal.models.numerals import json_number
from shoal.models.predicates import is_predicate
from shoal.models.times import time_of_field

SHOWN_FROM = 0.1  # of the records; a rarer name may itself say something about somebody
MOST = 0.9  # of the records
DEEPEST = 8  # objects in one another, of which fields are named


class Form(Enum):
    """What a field holds, in the words in which people are told."""

    NUMBER = "numbers"
    TEXT = "texts"
    BOOLEAN = "true or false"
    TIME = "times (ISO 8601)"
    DIGITS = "numbers between quotes"
    EPOCH = "numbers as long as those of seconds or milliseconds since 1970"
    SLASHED = "dates with slashes or points, which cannot be read; write 2024-01-31T18:30:00Z"
    LOGGED = "dates with the name of a month, which cannot be read; write 2024-01-31T18:30:00Z"
    ZONED = "times with the name of a zone, which cannot be read; write its offset, as in 2024-01-31T18:30:00+01:00"
    THOUSANDS = "numbers with commas between thousands, which cannot be read; write them without"
    COMMA = "numbers with a decimal comma, which cannot be read; write a point"
    MONEY = "numbers with a currency or unit, which cannot be read; write the number alone"
    LIST = "lists"


OF_TEXTS = (
    (US_DATE, Form.SLASHED), (LOG_DATE, Form.LOGGED), (ZONE_NAME, Form.ZONED), (THOUSANDS, Form.THOUSANDS),
    (COMMA, Form.COMMA), (MONEY, Form.MONEY),
)  # fmt: skip
UNREADABLE = tuple(form for _, form in OF_TEXTS)
IDS = (Form.NUMBER, Form.EPOCH, Form.TEXT, Form.DIGITS)
GROUPS = (*IDS, Form.BOOLEAN)
TIMES = (Form.TIME, Form.EPOCH, Form.NUMBER, Form.DIGITS)
NUMBERS = (Form.NUMBER, Form.EPOCH)
EPOCH = re.compile(r"1\d{9}(?:\d{3}){0,3}(?:\.\d+)?")  # seconds from 2001 to 2033, or milliseconds ...


@dataclass(frozen=True)
class Field:
    """One field, as a configuration names it."""

    path: str
    form: Form  # of most records that have it
    share: float  # of the records that have it
    fault: str | None = None  # why no configuration can name it

    @property
    def often(self) -> str:
        """How many records have it, in words that say no more than is needed to choose it."""
        if self.share == 1:
            return "in every record"
        return "in most records" if self.share >= MOST else "missing in many records"


def fields_of(records: Iterable[dict[str, Any]], *, is_table: bool) -> list[Field]:
    """The fields of records, in the order in which they first come.

    >>> [(field.path, field.form.name) for field in fields_of([{"a": 1, "b": {"c": "x"}}], is_table=False)]
    [('a', 'NUMBER'), ('b.c', 'TEXT')]
    """
    found: dict[tuple[str, ...], Counter[Form]] = {}
    count = 0
    for record in records:
        count += 1
        for path, value in _leaves(record, ()):
            forms = found.setdefault(path, Counter())
            form = form_of(value, is_table=is_table)
            if form is not None:
                forms[form] += 1
    return [
        _field(path, forms, count) for path, forms in found.items() if forms and forms.total() >= SHOWN_FROM * count
    ]


def form_of(value: Any, *, is_table: bool) -> Form | None:
    """The form of what a field holds; None if it holds nothing. Cells of a table are texts, also those with numbers.

    >>> [form_of(text, is_table=True).name for text in ("12.5", "1/31/2024")], form_of("12.5", is_table=False).name
    (['NUMBER', 'SLASHED'], 'DIGITS')
    """
    match value:
        case None | "":
            return None
        case bool():
            return Form.BOOLEAN
        case list():
            return Form.LIST
        case str():
            return _form_of_text(value, is_table=is_table)
    return _form_of_number(str(value))


def _form_of_number(digits: str) -> Form:
    return Form.EPOCH if EPOCH.fullmatch(digits) else Form.NUMBER


def _form_of_text(text: str, *, is_table: bool) -> Form:
    if json_number(text) is not None:
        return _form_of_number(text) if is_table else Form.DIGITS
    if time_of_field(text) is not None:
        return Form.TIME
    return next((form for pattern, form in OF_TEXTS if pattern.fullmatch(text)), Form.TEXT)


def _leaves(record: dict[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in record.items():
        path = (*above, name)
        if isinstance(value, dict) and len(path) < DEEPEST:
            yield from _leaves(value, path)
        elif not isinstance(value, dict):
            yield path, value


def _field(path: tuple[str, ...], forms: Counter[Form], count: int) -> Field:
    order = list(Form)
    form = min(forms, key=lambda one: (-forms[one], order.index(one)))
    return Field(".".join(path), form, forms.total() / count, _fault(path))


def _fault(path: tuple[str, ...]) -> str | None:
    if not all(path):
        return "a name is empty"
    if any("." in name for name in path):
        return "its name has a dot, which stands for a nested object; rename it"
    try:
        "".join(path).encode()
    except UnicodeEncodeError:
        return "its name is no Unicode; rename it"
    return "its name has a zero character; rename it" if any("\0" in name for name in path) else None


def can_be_value(field: Field) -> bool:
    """Whether the name can stand as a value: one with signs of comparison would be read as a predicate."""
    return field.form in NUMBERS and not is_predicate(field.path)
