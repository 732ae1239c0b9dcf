"""Prints docs/reference/topics.md: the prose of `topics.md.in`, fields by the schemas, and a real record of each.

The records are of the golden corpus (tests/golden/): the first one of a kind that its case makes.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from shoal.models import schemas
from tests.golden.case import Case
from tests.golden.configurations import CASES
from tests.golden.corpus import outcome_of
from tests.golden.driver import run_file

TEMPLATE = Path(__file__).with_name("topics.md.in")


class Topic(NamedTuple):
    """What no schema says of a topic."""

    name: str
    schema: str
    key: str
    partitions: str
    kept: str
    readers: str
    more: str  # what to know of it


FOR_EVER, COMPACTED, TRIMMED = "for ever", "compacted", "what is needed"
TOPICS = (
    Topic("APP.releases", "releases", "metric and group", "`partitions`", FOR_EVER, "**public**",
          "The record key is `metric|group`. "
          "All releases of a group are in one partition, in their order. Header `n` counts the releases of the "
          "partition, and `chain` is the hash of them all, in hexadecimal; nobody but shoal needs them. "
          "[What a release says](../explanation/guarantee.md#what-a-release-says) explains each field."),
    Topic("APP.activations", "activations", "metric and group", "`partitions`", FOR_EVER, "**public**",
          "The record key is `metric|group`. "
          "They are in the partition with the number of that of their group's releases, in the same transactions."),
    Topic("APP.contributions", "contributions", "topic and partition of the source", "`partitions`", FOR_EVER,
          "internal: nobody but workers", "The record key is `TOPIC|PARTITION` of the source. "
          "Exact sums, without noise, under pseudonyms. `n` leaves out no number."),
    Topic("APP.dead-letters", "dead-letters", "topic and partition of the source", "`partitions`", FOR_EVER,
          "internal: those who may read the events", "The record key is `TOPIC|PARTITION` of the source. "
          "Each holds an event as it came. "
          "[Dead letters](../guides/dead-letters.md) says how to repair them, and lists the reasons."),
    Topic("APP.bound.TOPIC.changelog", "bound-changelog", "binary", "those of TOPIC", TRIMMED,
          "internal: nobody but workers", "The state of a source partition: a log of accounts, which are binary and "
          "name users. Each transaction ends with a mark, in JSON:"),
    Topic("APP.release.changelog", "release-changelog", "a letter and JSON", "`partitions`", COMPACTED,
          "internal: nobody but workers", "State of a contributions partition. A key such as `h[\"visits/1|east\"]` "
          "is its kind and a JSON list."),
)  # fmt: skip
# Of each kind of release and activation, a case of the golden corpus and its metric.
RELEASES = {
    "mean": ("naive", "naive"), "mean-of-several": ("three coordinates", "full"), "stepped": ("window", "sum"),
    "variance": ("variance", "window"), "count": ("window", "count"), "mean-per-slot": ("hexagons", "hexagons"),
    "mean-of-several-per-slot": ("few users with several values", "plane"),
    "variance-per-slot": ("mean and variance", "both"),
    "distribution-per-slot": ("noise intervals of several releases", "shares"), "noisy-count": ("presence", "count"),
    "noisy": ("presence", "mean"), "noisy-variance": ("presence", "both"),
    "noisy-distribution": ("presence in bins", "few"),
}  # fmt: skip
ACTIVATIONS = {
    "level": ("full", "full"), "shown": ("keys that are found", "users"),
    "clip": ("presence in ranges that are chosen", "mean"),
}  # fmt: skip
CLUSTER = "keys that are found"  # of what is internal
ENTRIES = {
    "head": b"h", "kept": b"k", "run": b"r", "sums": b"p", "reached": b"s",
    "hidden": b"c", "mark": b"\x00",
}  # fmt: skip


def page() -> str:
    """The whole page."""
    table = "".join(
        f"| [`{one.name}`](#{_anchor(one.name)}) | {one.key} | {one.partitions} | {one.kept} | {one.readers} |\n"
        for one in TOPICS
    )
    sources = "| [source topics](#source-topics) | the user | yours | yours | those who may read the events |\n"
    text = TEMPLATE.read_text("utf-8").replace("<!-- topics -->\n", sources + table)
    text = re.sub(r"<!-- schema (\S+) -->\n", lambda mark: _whole(mark[1]), text)
    return text.replace("<!-- sections -->\n", "\n".join(map(_section, TOPICS)))


def _anchor(name: str) -> str:
    return name.lower().replace(".", "")


def _schema(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(schemas.text(name))
    return read


def _whole(name: str) -> str:
    return f"{_schema(name)['description']} Schema: `{name}`.\n"


def _section(topic: Topic) -> str:
    schema = _schema(topic.schema)
    parts = [f"## {topic.name}\n\n{schema['description']} Schema: `{topic.schema}`.\n\n{topic.more}\n"]
    if "$defs" not in schema:
        parts.append(_fields(schema))
        parts.append(_record(_of_cluster(topic.schema)))
    elif topic.schema == "release-changelog":
        parts.append(_entries(schema))
    else:
        first = next(iter(schema["$defs"].values()))["properties"]
        shared = [name for name in first if all(name in kind["properties"] for kind in schema["$defs"].values())]
        always = [name for name in shared if all(name in kind["required"] for kind in schema["$defs"].values())]
        parts.append(_fields({"properties": {name: first[name] for name in shared}, "required": always}))
        for name, kind in schema["$defs"].items():
            own = {field: said for field, said in kind["properties"].items() if field not in shared}
            title = kind["title"].removeprefix("Release: ")
            parts.append(f"### {title[0].upper() + title[1:]}\n\nKind `{name}`.\n")
            if own:
                parts.append(_fields({"properties": own, "required": kind["required"]}))
            parts.append(_record(_published(topic.schema, name)))
    return "\n".join(parts)


def _fields(schema: dict[str, Any]) -> str:
    """The table of an object's fields."""
    required = schema.get("required", schema["properties"])
    rows = "".join(
        f"| `{name}` | {said.get('description', '')}{'' if name in required else ' May be missing.'} |\n"
        for name, said in schema["properties"].items()
    )
    return f"| field | what it is |\n| --- | --- |\n{rows}"


def _entries(schema: dict[str, Any]) -> str:
    """The kinds of a changelog, each with a record."""
    _, mark = next(_changelog(b"\x00"))
    kinds = [name for name in schema["$defs"] if name != "mark"]
    rows = "".join(f"| `{name}` | {schema['$defs'][name]['description']} |\n" for name in kinds)
    found = {name: next(_changelog(ENTRIES[name]), None) for name in kinds}
    shown = "\n".join(f"{key.decode()}  {value.decode()}" for key, value in filter(None, found.values()))
    return (
        f"| kind | what it is |\n| --- | --- |\n{rows}\n"
        f"Keys and values, as they stand there:\n\n```text\n{shown}\n```\n\n"
        f"And the mark:\n\n{_record(mark)}"
    )


def _record(value: bytes) -> str:
    """A record in the digits of its bytes, in lines of readable length."""
    text, lines = value.decode(), [""]
    for piece in re.split(r"(?<=,)(?=[\"\[{\d-])", text):
        if len(lines[-1]) + len(piece) > 110:
            lines.append(" ")
        lines[-1] += piece
    return "```json\n" + "\n".join(lines) + "\n```\n"


def _case(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


@cache
def _file(case: str) -> Any:
    return run_file(_case(case))


def _published(schema: str, kind: str) -> bytes:
    """The first release, or activation, of that kind that has a value."""
    case, metric = (RELEASES if schema == "releases" else ACTIVATIONS)[kind]
    made = _file(case)
    records: list[bytes] = made.releases if schema == "releases" else made.activations
    wanted = {"shown": "shown", "clip": "clip"}.get(kind)
    for record in records:
        said = json.loads(record)
        if said["metric"] == metric and said.get("kind") == wanted and said.get("value", 0) is not None:
            return record
    raise LookupError(f"{case} makes no {kind}")


def _of_cluster(schema: str) -> bytes:
    """A record of an internal topic; not the first ones, which are bare."""
    if schema == "dead-letters":
        return _file("naive").dead_letters[0]  # type: ignore[no-any-return]
    if schema == "bound-changelog":
        return _last(b"\x00mark", "bound-changelog")
    messages = [entry[1] or b"" for entry in outcome_of(_case("naive")).entries["messages"]]
    return min((message for message in messages if json.loads(message)["c"] or json.loads(message)["s"]), key=len)


def _last(key: bytes, kind: str) -> bytes:
    entries = outcome_of(_case("naive")).entries[kind]
    return next(entry[2] or b"" for entry in reversed(entries) if entry[1] == key)


def _changelog(prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Records of the changelog whose keys begin so, the shortest first."""
    for case in ("naive", "hexagons", CLUSTER, "window"):
        found = [
            (entry[1] or b"", entry[2])
            for entry in outcome_of(_case(case)).entries["release-changelog"]
            if (entry[1] or b"").startswith(prefix) and entry[2] is not None
        ]
        yield from sorted(((key, value or b"") for key, value in found), key=lambda one: (len(one[1]), one))


if __name__ == "__main__":
    print(page(), end="")
