"""Pieces of the JSON Schemas of topics: types, and objects that list all their fields."""

from collections.abc import Iterable
from typing import Any

DRAFT = "https://json-schema.org/draft/2020-12/schema"

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
NULL: Schema = {"type": "null"}
NAME: Schema = {"type": "string", "pattern": "^[a-z0-9_-]+$"}
HASH: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
SEAL: Schema = {"type": "string", "pattern": "^([0-9a-f]{8}){1,2}$"}  # of a record of release's changelog
ISO: Schema = {"type": "string", "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$"}
LABEL: Schema = {"type": "string", "pattern": "^[a-z0-9_-]+/[0-9]+$"}  # name/version
GROUP_KEY: Schema = {"type": "string", "pattern": r"^[a-z0-9_-]+/[0-9]+\|"}  # name/version|group


def ref(name: str) -> Schema:
    """One of the kinds that the file defines."""
    return {"$ref": f"#/$defs/{name}"}


def either(*kinds: Schema) -> Schema:
    """One of several kinds."""
    return {"anyOf": list(kinds)}


def row(*kinds: Schema) -> Schema:
    """A list of so many entries, each of its own kind."""
    return {"type": "array", "prefixItems": list(kinds), "minItems": len(kinds), "maxItems": len(kinds)}


def rows(kind: Schema) -> Schema:
    """A list of any length."""
    return {"type": "array", "items": kind}


def by_name(names: Schema, kind: Schema) -> Schema:
    """An object whose names are not the schema's."""
    return {"type": "object", "propertyNames": names, "additionalProperties": kind}


def table(title: str, description: str, fields: dict[str, Any], optional: Iterable[str] = ()) -> Schema:
    """An object with these fields and no others."""
    left_out = set(optional)
    return {
        "title": title, "description": description, "type": "object", "properties": fields,
        "required": [name for name in fields if name not in left_out], "additionalProperties": False,
    }  # fmt: skip


def file(name: str, body: Schema) -> Schema:
    """A schema as a file has it."""
    return {"$schema": DRAFT, "$id": f"urn:shoal:schema:{name}"} | body


def said(description: str, kind: Schema) -> Schema:
    """A kind, and what it means here."""
    return {"description": description} | {key: value for key, value in kind.items() if key != "description"}
