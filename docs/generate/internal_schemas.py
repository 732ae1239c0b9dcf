"""The JSON Schemas of what workers write for themselves, of dead letters, and of beats."""

from collections.abc import Iterable

from docs.generate.json_schema import (
    COUNT,
    GROUP_KEY,
    HASH,
    INTEGER,
    ISO,
    LABEL,
    NAME,
    NULL,
    SEAL,
    TEXT,
    Schema,
    by_name,
    either,
    file,
    ref,
    row,
    rows,
    said,
    table,
)
from shoal.models.records import MAX_DEAD_LETTER_BYTES


def _contributions() -> Schema:
    total = either(INTEGER, rows(INTEGER))
    samples = by_name(TEXT, rows(total))
    one = row(INTEGER, TEXT, COUNT, COUNT, COUNT, either(total, samples))
    partial = row(INTEGER, rows(total))
    return file("contributions", table(
        "Contributions",
        "The value of a record of APP.contributions: what a source partition sends to one contributions partition. "
        "Exact, without noise: internal.",
        {
            "t": said("The source topic.", TEXT),
            "p": said("The source partition.", COUNT),
            "n": said("The number of the message from that partition to this one, from 1.", COUNT | {"minimum": 1}),
            "o": said("The source partition's next offset.", COUNT),
            "w": said("Wall time of writing, in milliseconds.", INTEGER),
            "m": said("How far clocks have come, in microseconds, by label; null: none moved.",
                      either(NULL, by_name(TEXT, either(INTEGER, NULL)))),
            "i": said("Whether the source partition had nothing more.", {"type": "boolean"}),
            "c": said("By version and group: time, pseudonym, number, level, samples, total of each contribution.",
                      by_name(GROUP_KEY, rows(one))),
            "s": said("By the same: start of the tick, and cell, samples, total, cell, ... summed over users.",
                      by_name(GROUP_KEY, rows(partial))),
            "a": said("The last accepted loss of the source partition, if any: its id in the ledger.", COUNT),
        },
        ("a",),
    ))  # fmt: skip


def _dead_letters() -> Schema:
    fields = {
        "reason": said("Why it cannot be used.", {"type": "string", "pattern": "^[a-z-]+$"}),
        "metric": said("The metric that cannot use it.", either(NAME, {"const": ""})),
        "topic": said("Where it comes from.", TEXT),
        "partition": said("Its partition there.", COUNT),
        "offset": said("Its offset there.", COUNT),
        "record": said("Its value, raw: an event. Null if it had none.", either(TEXT, NULL)),
        "length": said(
            f"Of a record beyond {MAX_DEAD_LETTER_BYTES} bytes, of which only the beginning is here.", COUNT
        ),
        "sha256": said("Of such a record, as a whole.", HASH),
    }
    made = table("Dead letters", "The value of a record of APP.dead-letters: a record that a metric cannot use. "
                 "Internal: it holds the event.", fields, ("length", "sha256"))  # fmt: skip
    return file("dead-letters", made | {"dependentRequired": {"length": ["sha256"], "sha256": ["length"]}})


def _beats() -> Schema:
    return file("beats", said("The header shoal-beat of a record of a source topic whose key and value are null: what "
                              "time it is, where presence is protected. The header shoal-clock says it elsewhere.",
                              {"title": "Beats"} | ISO))  # fmt: skip


def _mark(fields: Schema, optional: Iterable[str] = ()) -> Schema:
    usual = {
        "format": said("The form of the state.", {"type": "integer", "minimum": 1}),
        "offset": said("Up to where input is in the state.", COUNT),
        "log": said("The id of the audit log that it belongs to.", TEXT),
    }
    return table("Mark", "How far the state reaches, whose it is and in which form.", usual | fields, optional)


def _bound_changelog() -> Schema:
    fields = {
        "numbers": said("Of the last message to each contributions partition.", rows(COUNT)),
        "starts": said("Of each metric, the offset at which it began.", by_name(LABEL, INTEGER)),
        "accounts": said("Of each metric, how much of what its accounts hold.", by_name(LABEL, rows(COUNT))),
        "watermarks": said("How far each clock has come, by label.", by_name(TEXT, either(INTEGER, NULL))),
        "beat": said("The last beat.", INTEGER),
        "reached": said(
            "Of each metric that was added, how far its clock had come where it began, if it had.",
            by_name(LABEL, INTEGER),
        ),
        "turn": said("The last accepted loss, if any: its id in the ledger.", COUNT),
        "gapped": said("The metrics that had begun before an accepted loss.", rows(LABEL)),
        "resumes": said("The time of the beat from which records count after an accepted loss.", INTEGER),
        "record": said("The last record of the log, which has this mark's digest.", COUNT),
        "needs": said("The first record of the log that a successor needs; 0: all, and what stands before it.", COUNT),
        "cost": said("The most bytes that what this transaction logs may have, whatever the values.", COUNT),
    }
    body = _mark(fields, ("beat", "reached", "turn", "gapped", "resumes"))
    return file("bound-changelog", body | {
        "title": "Mark of the changelog of bound",
        "description": "The value under key \\0mark of APP.bound.TOPIC.changelog, JSON. Under \\0topic is the source "
        "topic's id, as text. All other records are binary, numbered in their keys, \\0log and 8 bytes: accounts that "
        "changed, and others again. Internal.",
    })  # fmt: skip


def _release_changelog() -> Schema:
    key, pseudonym = GROUP_KEY, TEXT
    total = either(INTEGER, rows(INTEGER), by_name(TEXT, rows(either(INTEGER, rows(INTEGER)))))
    source = row(COUNT, by_name(TEXT, either(INTEGER, NULL)), either(INTEGER, NULL),
                 by_name(TEXT, rows(row(INTEGER, INTEGER))))  # fmt: skip
    mark = _mark(
        {
            "count": said("Releases so far.", COUNT),
            "chain": said("The hash of the last one's chain.", HASH),
            "clocks": said("Of each source topic and partition: number, clocks, idle since, history.",
                           by_name(TEXT, rows(source))),
            "acted": said("Of each metric, how far ticks are closed.", by_name(LABEL, either(INTEGER, NULL))),
            "held": said("How many keys of each kind there are, and their digest.", by_name(TEXT, COUNT)),
            "seal": said("A checksum of the mark without it.", SEAL),
        },
    )  # fmt: skip
    head = table(
        "Head of a group", "What a group has released; its statistic's state.",
        {"seq": COUNT, "chain": HASH, "releaser": {"type": "array"}, "next": INTEGER, "active": INTEGER},
        ("next", "active"),
    )  # fmt: skip
    kinds = {
        "head": _entry("h", "the head of a group", row(key), head),
        "kept": _entry("k", "a contribution that a releaser keeps: group, level, pseudonym", row(key, COUNT, pseudonym),
                       row(INTEGER, TEXT, COUNT, COUNT, COUNT, total, SEAL) | {"minItems": 6}),
        "run": _entry("r", "contributions of one message that wait for their tick: group, tick, how many came before",
                      row(key, INTEGER, COUNT), rows(either(row(INTEGER, TEXT, COUNT, COUNT, COUNT, total), SEAL))),
        "sums": _entry("p", "sums that wait for their tick: group, tick, chunk", row(key, INTEGER, COUNT), rows(total)),
        "reached": _entry("s", "how far the closing of a metric has got", row(LABEL), row(INTEGER, TEXT)),
        "hidden": _entry("c", "a group that is not shown yet", either(row(key), row(key, INTEGER)), {"type": "array"}),
        "mark": table("Mark", "Written last in every transaction.",
                      {"kind": {"const": "\0mark"}, "key": NULL, "value": mark}),
    }  # fmt: skip
    return file("release-changelog", {
        "title": "Changelog of release",
        "description": "A record of APP.release.changelog: its key is one letter, the kind, and JSON; its value is "
        "JSON, or null where it is gone. Here as one object, of kind, key and value. Under \\0topic is the id of the "
        "contributions topic, as text. What is written once, and hidden groups, has a checksum of key and value at its "
        "end. Internal.",
        "anyOf": [ref(name) for name in kinds],
        "$defs": kinds,
    })  # fmt: skip


def _entry(kind: str, meaning: str, key: Schema, value: Schema) -> Schema:
    return table(f"Kind {kind}", f"Under a key that begins with {kind}: {meaning}.",
                 {"kind": {"const": kind}, "key": key, "value": either(value, NULL)})  # fmt: skip


def schemas() -> dict[str, Schema]:
    """Each of them, by name."""
    return {
        "contributions": _contributions(), "dead-letters": _dead_letters(), "beats": _beats(),
        "bound-changelog": _bound_changelog(), "release-changelog": _release_changelog(),
    }  # fmt: skip
