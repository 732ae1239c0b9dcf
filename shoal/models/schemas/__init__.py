"""JSON Schemas of the configuration and of every topic: data of the package, one file each.

`make reference` writes them, of the models and of what docs/generate/topic_schemas.py says. They are of draft 2020-12,
allow no field that is not listed, and need nothing from the network.
"""

from pathlib import Path

FOLDER = Path(__file__).parent
SUFFIX = ".schema.json"


def names() -> tuple[str, ...]:
    """The names of all schemas, in the order of the alphabet."""
    return tuple(sorted(file.name.removesuffix(SUFFIX) for file in FOLDER.glob(f"*{SUFFIX}")))


def text(name: str) -> str:
    """The schema of that name, as JSON."""
    return (FOLDER / f"{name}{SUFFIX}").read_text("utf-8")
