"""Prints docs/reference/configuration.md: the prose of `configuration.md.in`, with the tables of the models.

`make reference` writes the page, and a test compares it with what this prints. A line `<!-- keys of NAME -->` becomes
the table of that section's keys: types, bounds, defaults and meanings as pydantic knows them. `<!-- environment -->`
becomes the table of the environment's variables.
"""

import re
import types
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from shoal.mechanisms.parts.of import Distribution
from shoal.models.config import forms
from shoal.models.config.cell import CellSection
from shoal.models.config.clip import ClipSection
from shoal.models.config.decay import DecaySection
from shoal.models.config.durations import format_duration
from shoal.models.config.file import ENVIRONMENT, AuditSection, PrivacySection, WebSection
from shoal.models.config.kafka import KafkaSection
from shoal.models.config.metric import MetricSection
from shoal.models.config.selection import SelectionSection
from shoal.models.exact import exact_text
from shoal.models.predicates import Predicate

TEMPLATE = Path(__file__).with_name("configuration.md.in")
SECTIONS: dict[str, type[BaseModel]] = {
    "kafka": KafkaSection,
    "audit": AuditSection,
    "privacy": PrivacySection,
    "web": WebSection,
    "metric": MetricSection,
    "decay": DecaySection,
    "cell": CellSection,
    "selection": SelectionSection,
    "clip": ClipSection,
}
DURATIONS = frozenset(
    {
        "idle_after",
        "latency",
        "every",
        "lateness",
        "max_ahead",
        "life",
        "horizon",
        "length",
        "half_life",
        "slot",
    }
)
INSTANTS = frozenset({"start", "end"})
TYPES = {
    int: "integer",
    str: "text",
    bool: "boolean",
    Path: "path",
    Fraction: "number",
    DecaySection: "table",
    CellSection: "table",
    SelectionSection: "table",
    ClipSection: '`"auto"` or table',
    Predicate: "predicate",
}
FORMS = {
    "mean": forms.MEAN, "of every step": forms.SUMS, "per slot": forms.CELLS, "add-remove": forms.HIDDEN,
    "add-remove, per slot": forms.HIDDEN_CELLS,
}  # fmt: skip
# Keys that are refused elsewhere than by a form's blocks, by column.
LACKED: Mapping[str, tuple[str, ...]] = {
    "mean": ("slot", "decay"), "of every step": ("slot", "max_per_group"), "per slot": forms.EVENT_LIMIT.keys,
    "add-remove": ("slot", "max_per_group"), "add-remove, per slot": ("max_per_group",),
}  # fmt: skip


def page() -> str:
    """The whole page."""
    text = TEMPLATE.read_text("utf-8").replace("<!-- environment -->\n", environment())
    text = text.replace("<!-- keys by form -->\n", keys_by_form())
    return re.sub(r"<!-- keys of (\w+) -->\n", lambda mark: keys(SECTIONS[mark[1]]), text)


def environment() -> str:
    """The table of the environment's variables."""
    rows = [(f"`{variable}`", f"`[{section}] {key}`") for variable, (section, key) in ENVIRONMENT.items()]
    return table(("variable", "takes the place of"), [*rows, ("`SHOAL_INSTANCE`", "`shoal worker --instance`")])


def keys(section: type[BaseModel]) -> str:
    """The table of a section's keys."""
    rows = (
        (f"`{name}`", ", ".join([type_of(field.annotation, name), *limits(field.metadata)]), default(name, field),
         field.description or "")
        for name, field in section.model_fields.items()
    )  # fmt: skip
    return table(("key", "type", "default", "meaning"), rows)


def keys_by_form() -> str:
    """The table of keys that not all metrics take, with the forms that take them."""
    names = [name for name in MetricSection.model_fields if not all(_takes(column, name) for column in FORMS)]
    rows = ((f"`{name}`", *(_takes(column, name) for column in FORMS)) for name in names)
    return table(("key", *FORMS), rows)


def _takes(column: str, key: str) -> str:
    """Cell of the table: "yes", the statistic that alone takes the key, or "" if no metric of the form does."""
    form = FORMS[column]
    if key in {*(key for block in form.lacks for key in block.keys), *LACKED.get(column, ())}:
        return ""
    if key not in forms.BINS.keys:
        return "yes"
    return next((name for name, cls in form.statistics.items() if cls is Distribution), "")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def type_of(annotation: Any, name: str) -> str:
    """A type as users know it: `str | None` is text, and a key in microseconds is a duration."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return type_of(arguments[0], name)
    if origin is Literal:
        return " or ".join(f'`"{choice}"`' for choice in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(type_of(part, name) for part in arguments if part is not type(None))
    if origin is tuple and arguments[-1] is Ellipsis:
        return f"list of {type_of(arguments[0], name)}"
    if origin is tuple:
        return f"[{', '.join(type_of(part, name) for part in arguments)}]"
    if annotation is int and name in DURATIONS:
        return "duration"
    if annotation is int and name in INSTANTS:
        return "date or time"
    return TYPES[annotation]


def limits(metadata: list[Any]) -> Iterator[str]:
    """Bounds and patterns in words."""
    bounds = {
        name: getattr(limit, name) for limit in metadata for name in ("ge", "gt", "le", "lt") if hasattr(limit, name)
    }
    if bounds.keys() == {"ge", "le"}:
        yield f"{bounds['ge']} to {bounds['le']}"
    else:
        words = {"ge": "at least", "gt": "greater than", "le": "at most", "lt": "less than"}
        yield from (f"{words[name]} {bound}" for name, bound in bounds.items())
    yield from (f"matches `{pattern}`" for limit in metadata if (pattern := getattr(limit, "pattern", None)))


def default(name: str, field: FieldInfo) -> str:
    """A default as it is written in TOML."""
    if field.is_required():
        return "required"
    value = field.default
    if value is None:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if value == ():
        return "`[]`"
    if isinstance(value, int) and name in DURATIONS:
        return f'`"{format_duration(value)}"`'
    if isinstance(value, Fraction | Decimal):
        return f"`{exact_text(Fraction(value))}`"
    return f"`{value}`" if isinstance(value, int) else f'`"{value}"`'


if __name__ == "__main__":
    print(page(), end="")
