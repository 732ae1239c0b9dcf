"""Says in one line what is wrong with a configuration file: where it is, what it is, and what to write instead.

The library that checks the file names its own types and patterns; people who write TOML know tables, text and numbers.
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from shoal.models.config.section import Section

Location = tuple[int | str, ...]

NEAR = 0.75  # similarity from which on a known key is what was meant: `epsilom` is 0.86 of `epsilon`
TABLES = {
    "decay": '{ kind = "window", length = "7d" }',
    "cell": '{ h3 = 8, lat = "lat", lon = "lon" }',
    "selection": "{ epsilon = 0.2 }",
    "clip": '{ share = 0.01 }, or "auto"',
}
NAMES = {
    "name": "small letters a-z, digits, _ and -, as in mean-delay",
    "topic": "letters, digits, ., _ and -, as Kafka's topics do",
    "app": "letters, digits, ., _ and -, as Kafka's topics do",
}
WORDS = {
    "string_type": "must be text, in quotes",
    "string_too_short": "must not be empty",
    "path_type": "must be a path, in quotes",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a smaller number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "tuple_type": "must be a list, as in [0.25, 0.5]",
    "too_long": "must have fewer entries",
}


def complaint(error: ValidationError, tree: Mapping[str, Any], models: Mapping[str, type[Section]]) -> str:
    """The first thing that is wrong, with where it is and a remedy; `models` are the file's tables by name."""
    errors = error.errors(include_input=False, include_url=False)
    # A misspelt key is both unknown and missing: the unknown one says more.
    first = min(errors, key=lambda problem: problem["type"] != "extra_forbidden")
    loc: Location = first["loc"]
    where, model = _place(loc, tree, models)
    key = str(loc[-1])
    if first["type"] == "extra_forbidden":
        return f"{where}: unknown key {key!r}; {_instead(key, model)}"
    if _of_the_file(loc, tree):
        return f"the file: {_table(str(loc[0]), missing=first['type'] == 'missing')}"
    if first["type"] == "missing":
        return f"{where}: {key} is missing; add it"
    name = _key(loc, models)
    return f"{where}: {name} {_words(name, first)}" if name else f"{where}: {_words(name, first)}"


def zero_character(tree: Mapping[str, Any], models: Mapping[str, type[Section]]) -> str | None:
    """Where a key or a text has U+0000, which no path, topic or database can have; None if there is none."""
    for loc in _with_zero(tree, ()):
        where, _ = _place(loc, tree, models) if loc[1:] else ("the file", None)
        key = next(str(part) for part in reversed(loc) if isinstance(part, str))
        return f"{where}: {key} has the character \\u0000; remove it".replace("\0", "\\u0000")
    return None


def _with_zero(value: Any, loc: Location) -> Iterator[Location]:
    if isinstance(value, str) and "\0" in value:
        yield loc
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        if isinstance(key, str) and "\0" in key:
            yield (*loc, key)
        yield from _with_zero(part, (*loc, key))


def _instead(key: str, model: type[Section] | None) -> str:
    known = list(model.model_fields) if model is not None else ["kafka", "audit", "privacy", "web", "metric"]
    near = difflib.get_close_matches(key, known, n=1, cutoff=NEAR)
    return f"did you mean {near[0]!r}?" if near else "remove it, docs/reference/configuration.md lists all keys"


def _of_the_file(loc: Location, tree: Mapping[str, Any]) -> bool:
    """Whether a table as a whole is wrong: missing, or not a table."""
    if len(loc) == 1:
        return True
    return loc[0] == "metric" and len(loc) == 2 and not isinstance(tree["metric"][loc[1]], dict)


def _table(name: str, *, missing: bool) -> str:
    if name == "metric":
        what = "there is no metric" if missing else "metrics are tables of their own"
        return f"{what}; write [[metric]], with two brackets, above the keys of each"
    return f"[{name}] is missing; add it" if missing else f"{name} must be one table; write [{name}] above its keys"


def _place(
    loc: Location, tree: Mapping[str, Any], models: Mapping[str, type[Section]]
) -> tuple[str, type[Section] | None]:
    """The table in words, and its model."""
    if len(loc) == 1:
        return "the file", None
    first, model = str(loc[0]), models.get(str(loc[0]))
    if first == "metric" and isinstance(loc[1], int):
        given = tree["metric"][loc[1]]
        name = given.get("name") if isinstance(given, dict) else None
        inner = [models[str(part)] for part in loc[2:-1] if part in TABLES]
        called = f'metric "{name}"' if isinstance(name, str) else f'metric "number {loc[1] + 1}"'
        return called, inner[0] if inner else model
    return f"[{first}]", model


def _key(loc: Location, models: Mapping[str, type[Section]]) -> str:
    """The key that the location ends in; a number in a list, or an alternative of its type, may follow it."""
    known = {key for model in models.values() for key in model.model_fields}
    return next((str(part) for part in reversed(loc[1:]) if part in known), "")


def _words(name: str, first: Any) -> str:
    """A sentence on what is wrong with a key's value."""
    kind, text = first["type"], str(first["msg"])
    if kind == "string_pattern_mismatch":
        return f"must be made of {NAMES[name]}"
    if kind in ("model_type", "dict_type", "model_attributes_type") and name in TABLES:
        return f"must be a table, as in {name} = {TABLES[name]}"
    if name == "groups" and kind in ("tuple_type", "string_type", "too_short"):
        return 'must be a list of keys, as in ["GB", "FR"]; the field that they stand in is the group'
    if name == "compacted":
        return 'must be a list of topics, as in ["events"]'
    if name == "contribution_cap" and kind not in ("greater_than_equal", "less_than_equal"):
        return "must be a whole number, median or optimal"
    return WORDS.get(kind) or text.removeprefix("Value error, ").replace("Input should be", "must be")
