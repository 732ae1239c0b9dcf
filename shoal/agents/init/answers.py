"""How answers are read: each reader takes what a person typed and gives its one spelling, or says what to type instead.

A reader is the same for an option of a script and for an answer at the terminal.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from shoal.agents.init.fields import UNREADABLE, Field, Form
from shoal.models.config.durations import parse_duration
from shoal.models.config.section import positive_span
from shoal.models.exact import exact_number
from shoal.models.numerals import json_number
from shoal.models.predicates import is_predicate
from shoal.models.times import iso, time_of_text

Answers = Mapping[str, str]
Reader = Callable[[str], str]
NONE, NEVER, FOUND = "none", "never", "found"


def one_of(*names: str) -> Reader:
    """One of these words, or its number in the list."""

    def read(text: str) -> str:
        word = text.lower()
        if word.isdecimal() and 0 < int(word) <= len(names):
            return names[int(word) - 1]
        if word not in names:
            raise ValueError(f"write {' or '.join(names)}")
        return word

    return read


def number(text: str) -> str:
    """A number as JSON and TOML write it."""
    written = json_number(text)
    if written is None:
        raise ValueError("write a number, such as 1 or 0.5")
    exact_number(written)
    return written


def positive(text: str) -> str:
    """The answer as a decimal number; ValueError unless it is above 0."""
    written = number(text)
    if Fraction(written) <= 0:
        raise ValueError("write a number above 0")
    return written


def whole(text: str) -> str:
    """A whole number from 1 on."""
    plain = re.sub(r"[,_ ]", "", text)
    if not (plain.isascii() and plain.isdecimal() and int(plain[:20])):
        raise ValueError("write a whole number from 1 on")
    return str(int(plain[:20]))


def span(text: str) -> str:
    """A duration that a tick may have."""
    plain = text.replace(" ", "")
    positive_span(parse_duration(plain))
    return plain


def instant(text: str) -> str:
    """A time, as ISO 8601 in UTC."""
    time = time_of_text(text)
    if time is None:
        raise ValueError("write a date or a time, such as 2026-01-31 or 2026-01-31T18:30:00Z")
    return iso(time)


def instant_or_never(text: str) -> str:
    """The answer as an ISO 8601 time in UTC, or `never` for a metric without end."""
    return NEVER if text.lower() == NEVER else instant(text)


def ends(text: str) -> str:
    """Two numbers, the smaller one first: `0 200`, `0..200` or `[0, 200]`."""
    parts = [part for part in re.split(r"\.\.|\bto\b|[\s,;\[\]]+", text) if part]
    if len(parts) != 2:
        raise ValueError("write two numbers, the smaller one first, such as 0 200")
    low, high = map(number, parts)
    if Fraction(low) >= Fraction(high):
        raise ValueError("write the smaller number first, such as 0 200")
    return f"{low} {high}"


def keys(text: str) -> str:
    """Names of groups between commas, as a JSON list; or `found`."""
    if text.lower() == FOUND:
        return FOUND
    names = _listed(text) or [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise ValueError(f"write different names with commas between them, or {FOUND}")
    return json.dumps(names, ensure_ascii=False)


def _listed(text: str) -> list[str]:
    """The names in a JSON list, which may have commas in them; empty if the text is none."""
    try:
        found = json.loads(text) if text.startswith("[") else []
    except ValueError:
        return []
    return found if isinstance(found, list) and all(isinstance(name, str) for name in found) else []


def name(text: str) -> str:
    """What a metric or a topic may be called."""
    if not re.fullmatch(r"[a-z0-9_-]+", text):
        raise ValueError("write small letters, digits, - and _ alone")
    return text


def topic(text: str) -> str:
    """What Kafka lets a topic be called."""
    if not re.fullmatch(r"[a-zA-Z0-9._-]+", text):
        raise ValueError("write letters, digits, - . and _ alone")
    return text


def field_of(fields: Sequence[Field], role: str, forms: tuple[Form, ...]) -> Reader:
    """A field of the sample that can have this role, or any name where there is no sample."""

    def read(text: str) -> str:
        exact = [field for field in fields if field.path == text]
        known = exact or [field for field in fields if field.path.strip() == text.strip()]  # a name may end in a blank
        text = known[0].path if known else text.strip()
        _check_name(text, role)
        if fields and not known:
            usable = ", ".join(repr(field.path) for field in fields if field.form in forms and field.fault is None)
            raise ValueError(
                f"the sample has no field {text!r}; {f'name one of {usable}' if usable else 'it has none that fits'}"
            )
        for field in known:
            if field.fault is not None:
                raise ValueError(f"field {text!r} cannot be used: {field.fault}")
            if field.form not in forms:
                raise ValueError(f"field {text!r} holds {field.form.value}{_remedy(field, role)}")
        return text

    return read


def field_or_none(read: Reader) -> Reader:
    """A reader of fields that also takes `none`: the configuration then names no field for this role."""
    return lambda text: NONE if text.strip().lower() == NONE else read(text)


def _check_name(text: str, role: str) -> None:
    if "\0" in text:
        raise ValueError("a name has no zero character")
    if role == "value" and is_predicate(text):
        raise ValueError("a name with <, >, = or ! would be read as a comparison; rename the field")


def _remedy(field: Field, role: str) -> str:
    if field.form in UNREADABLE:
        return ""
    needed = {"user": "texts or whole numbers", "value": "numbers", "time": "ISO 8601 or seconds since 1970"}
    return f", and a {role} is of {needed[role]}" if role in needed else f", and a {role} cannot be that"
