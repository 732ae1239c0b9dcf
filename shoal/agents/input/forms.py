"""Names the form of what a metric cannot use, so that a person can correct it; never a value, nor any part of one.

Only the first few refused records of a file that cannot be used are described, on the machine and the terminal of the
file's owner.
"""

import re
from typing import Any

from shoal.agents.input.long_lines import LONGEST, is_cut
from shoal.mechanisms.parts.metric import Metric
from shoal.models.events import MISSING, getter, parse
from shoal.models.numerals import json_number
from shoal.models.predicates import KINDS
from shoal.stream.survey import Trouble

WHOLE = {
    "not-json": "it is no JSON object on a line of its own",
    "not-json-object": "it is JSON, and no object with named fields (a row of a table with more cells than its header "
    "becomes a list)",
    "error": "shoal fails to read it",
    "late": "it is late",
}
AS_UTF8 = "write the file as UTF-8, say by `iconv -f WINDOWS-1252 -t UTF-8`"
MONEY = re.compile(r"\s*[^\w\s.,+-]{1,3}\s*[+-]?\d[\d.,' ]*\s*|\s*[+-]?\d[\d.,' ]*\s*([^\w\s.,+-]{1,3}|[A-Za-z]{3})\s*")
COMMA = re.compile(r"\s*[+-]?[\d.' ]*\d,\d+\s*")
THOUSANDS = re.compile(r"\s*[+-]?\d{1,3}(,\d{3})+(\.\d+)?\s*")
US_DATE = re.compile(r"\s*\d{1,2}[/.]\d{1,2}[/.]\d{2,4}\b.*")
LOG_DATE = re.compile(r"\W*\d{1,2}[/ -][A-Za-z]{3}[/ -]\d{4}\b.*|[A-Za-z]{3}, \d.*")
ZONE_NAME = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+\s*\[?[A-Za-z]+(/[A-Za-z_]+)?\]?")
TEXTS_OF_VALUES = (
    (THOUSANDS, "a text with commas between thousands; write the number alone"),
    (COMMA, "a text with a decimal comma; write it with a point"),
    (MONEY, "a text with a currency or unit beside the number; write the number alone"),
)
TEXTS_OF_TIMES = (
    (
        re.compile(r"[+-]?\d+(\.\d*)?"),
        "digits that could be a date or a number of seconds; write 2024-01-31, or a JSON number",
    ),
    (US_DATE, "a date with slashes or points; write it as 2024-01-31T18:30:00Z"),
    (LOG_DATE, "a date with the name of a month, as in a log; write it as 2024-01-31T18:30:00Z"),
    (ZONE_NAME, "a time with the name of a zone; write its offset, as in 2024-01-31T18:30:00+01:00"),
)


def describe(trouble: Trouble) -> str:
    """The fault of a record, in words."""
    if is_cut(trouble.raw):
        return f"its line is longer than {LONGEST:,} bytes; split or shorten it"
    if trouble.is_garbled:
        return f"it is not UTF-8 text; {AS_UTF8}"
    if trouble.reason == "not-json" and b"\x00" in trouble.raw:
        return "it has zero bytes, so it is damaged; remove them, say by `tr -d '\\000'`"
    if trouble.reason in WHOLE:
        return WHOLE[trouble.reason]
    event: Any = parse(trouble.raw)  # an object, of which a field is at fault
    kind, _, role = trouble.reason.partition("-")
    metric = trouble.metric.parts
    path, value = _field(metric, role, event)
    if kind == "no":
        return f"there is no field {path!r}"
    if role == "value" and metric.fields is not None and metric.fields.predicate is not None:
        predicate = metric.fields.predicate
        return f"field {path!r} is no {dict(predicate.kinds)[path]}, which the predicate {predicate.text} needs"
    return f"field {path!r} is {_form(value, role)}"


def _field(metric: Metric, role: str, event: dict[str, Any]) -> tuple[str, Any]:
    """The field of the role, and what it holds; of several the first that is at fault."""
    paths = {"lat": "latitude", "lon": "longitude"}
    if role == "value":
        kinds = () if metric.fields is None else metric.fields.kinds
        fields = [(path, getter(path)(event)) for path, _ in kinds]
        faulty = [field for field, (_, kind) in zip(fields, kinds, strict=True) if type(field[1]) not in KINDS[kind]]
        return (faulty or fields or [("", MISSING)])[0]
    path = metric.pattern.get(paths.get(role, role), role)
    return path, getter(path)(event)


def _form(value: Any, role: str) -> str:
    match value:
        case None:
            return "null" if role in ("user", "group") else "null, or NaN or Infinity, which are no numbers"
        case bool():
            return "a boolean"
        case list():
            return "a list"
        case dict():
            return "an object"
        case str():
            return _text(value, role)
    return {
        "time": "a number that no calendar has, as seconds, milli-, micro- or nanoseconds since 1970",
        "lat": "a number outside -90 to 90",
        "lon": "a number outside -180 to 180",
    }.get(role, "a number with a fraction, or with more than 256 digits, which is no id")


def _text(text: str, role: str) -> str:
    if role in ("user", "group"):
        return "an empty text" if not text else "a text of more than 256 bytes, or no Unicode"
    if role == "time":
        forms = (words for form, words in TEXTS_OF_TIMES if form.fullmatch(text))
        return next(forms, "a text that is no ISO 8601 time; write 2024-01-31T18:30:00Z")
    if json_number(text) is not None:
        return "a number in a text; write it without quotes"
    return next((words for form, words in TEXTS_OF_VALUES if form.fullmatch(text)), "a text that is no number")
