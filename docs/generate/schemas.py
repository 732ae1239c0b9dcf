"""Writes the JSON Schemas of shoal/models/schemas/: `make reference` runs it, and a test compares."""

import json
from typing import Any

from docs.generate import config_schema, internal_schemas, topic_schemas
from shoal.models.schemas import FOLDER, SUFFIX


def files() -> dict[str, str]:
    """Every schema, as the text of its file, by name."""
    made: dict[str, dict[str, Any]] = {"configuration": config_schema.schema()} | topic_schemas.schemas()
    made |= internal_schemas.schemas()
    return {name: json.dumps(schema, indent=1, ensure_ascii=False) + "\n" for name, schema in made.items()}


def main() -> None:
    """Write them all."""
    for name, text in files().items():
        (FOLDER / f"{name}{SUFFIX}").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
