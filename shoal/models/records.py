"""Wire records: what stands in the topics that shoal writes, and nothing else.

    contributions   `Message`, JSON, internal: a run of contributions of one source partition, and its clock
    releases        `ReleaseForm`, JSON, public; record key `metric|group`
    activations     `activation_bytes`, JSON, public; same key and partition as the releases
    dead-letters    `dead_letter_bytes`, JSON, internal: the raw record, why and where

A release's bytes are part of the contract and of the hash chain: field order and number formats never change.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from shoal.mechanisms.statistic import OF_CLIP, OF_KEY
from shoal.models.json_bytes import json_bytes
from shoal.models.times import iso

MAX_DEAD_LETTER_BYTES = 64 * 1024
CLOCK_HEADER = "shoal-clock"  # on a source record with null value: moves its partition's clock to this ISO time
BEAT_HEADER = "shoal-beat"  # likewise; and nothing else moves the clocks of metrics that protect presence

# [effective, pseudonym, number, level, samples, total]. Of a value with several coordinates the total is a list with
# one for each; of what is released per slot an object with a list of samples for each cell.
Row = tuple[int, str, int, int, int, Any]
# [start of the tick, [cell, samples, total, cell, samples, total, ...]]: what was merged over users in a tick.
Partial = tuple[int, list[Any]]
Of = TypeVar("Of")


class Written(Mapping[str, list[Of]]):
    """Rows or partials by key as the kernel wrote them, in JSON; read only where somebody asks what is in them.

    >>> rows = Written(b'{"basket/1|GB":[[0,"f00d",1,0,1,7]]}')
    >>> rows == {"basket/1|GB": [[0, "f00d", 1, 0, 1, 7]]}, bool(Written(b"{}"))
    (True, False)
    """

    __slots__ = ("_read", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._read: dict[str, list[Of]] | None = None

    def _all(self) -> dict[str, list[Of]]:
        if self._read is None:
            self._read = orjson.loads(self.raw)
        return self._read

    def __getitem__(self, key: str) -> list[Of]:
        return self._all()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


def _as_written(written: Any) -> orjson.Fragment:
    return orjson.Fragment(written.raw)


@dataclass(slots=True)
class Message:
    """One record of the contributions topic: what a source partition sends to one contributions partition at once.

    `number` counts the messages from that source partition to that contributions partition, from 1. A watermark or
    an idle note promises that everything before it is in the log, this message's own contributions included.
    """

    topic: str
    partition: int
    number: int
    offset: int  # the source partition's next offset when this was sent: for error messages and the audit
    wall: int  # wall time of writing, milliseconds
    watermarks: dict[str, int | None] | None = None  # by clock label; None: nothing moved
    idle: bool = False  # at `wall`, the source partition had nothing more
    contributions: Mapping[str, list[Row]] = field(default_factory=dict)  # by `name/version|group`
    partials: Mapping[str, list[Partial]] = field(default_factory=dict)  # by the same; one for each tick
    turn: int = 0  # id of the last accepted loss of the source partition: offsets may begin again after it

    def encode(self) -> bytes:
        """JSON with one-letter keys, since contributions are the bulk of what shoal writes."""
        return orjson.dumps(
            {
                "t": self.topic, "p": self.partition, "n": self.number, "o": self.offset, "w": self.wall,
                "m": self.watermarks, "i": self.idle, "c": self.contributions, "s": self.partials,
                **({"a": self.turn} if self.turn else {}),
            },
            _as_written,
        )  # fmt: skip

    @classmethod
    def decode(cls, raw: bytes) -> "Message":
        """The message again, with lists where its rows were tuples."""
        wire = orjson.loads(raw)
        return cls(
            wire["t"], wire["p"], wire["n"], wire["o"], wire["w"], wire["m"], wire["i"], wire["c"], wire["s"],
            wire.get("a", 0),
        )  # fmt: skip


def record_key(metric: str, group: str | None) -> str:
    """The record key of a metric's group: `metric|group`, or `metric|` without a group."""
    return f"{metric}|{group or ''}"


def release_id(metric: str, version: int, group: str | None, seq: int) -> str:
    """The identity of a release: a pure function of metric, version, group and seq.

    >>> release_id("basket", 1, None, 7), release_id("basket", 1, "GB", 7)
    ('basket/1//7', 'basket/1/GB/7')
    """
    return f"{metric}/{version}/{group or ''}/{seq}"


class ReleaseForm:
    """Releases of one metric version as published: what all of them have in common is made into JSON once.

    >>> form = ReleaseForm("basket", {"epsilon": 1.0, "version": 1})
    >>> form.release({"group": None, "seq": 7}, {}), form.release({"seq": 8}, {"withheld": 2})
    (b'{"metric":"basket","group":null,"seq":7,"epsilon":1.0,"version":1}', \
b'{"metric":"basket","seq":8,"epsilon":1.0,"version":1,"withheld":2}')
    """

    __slots__ = ("_begins", "_ends")

    def __init__(self, metric: str, common: Mapping[str, Any]) -> None:
        """`common`: the fields behind those that differ, in the contract's order."""
        self._begins = b"%b," % orjson.dumps({"metric": metric})[:-1]
        self._ends = b",%b" % orjson.dumps(common)[1:-1]

    def release(self, fields: Mapping[str, Any], details: Mapping[str, Any]) -> bytes:
        """A release with these fields, in the contract's order, and these behind all others."""
        more = b",%b" % orjson.dumps(details)[1:-1] if details else b""
        return b"%b%b%b%b}" % (self._begins, orjson.dumps(fields)[1:-1], self._ends, more)


def activation_bytes(
    metric: str,
    version: int,
    group: str | None,
    level: int,
    at: int,
    prior: float | list[float | None] | None,
    epsilon: float,
    samples: int | list[int],
) -> bytes:
    """An activation as published: from this tick on, blocks of `level` count, clipped around the private prior.

    The prior is null where few users chose none, and nothing is clipped. For a value with several coordinates, prior
    and samples are lists with an entry for each (null and 0 where the level does not count), and epsilon is for all.
    """
    return json_bytes(
        {
            "metric": metric, "group": group, "version": version, "level": level, "at": iso(at),
            "prior": prior, "epsilon": epsilon, "samples": samples,
        }
    )  # fmt: skip


SHOWN, CLIP = "shown", "clip"  # the kinds of activations that are none of a level


def shown_bytes(metric: str, version: int, group: str, at: int, epsilon: float) -> bytes:
    """An activation as published: from this tick on, a key that nobody declared is shown; epsilon found it."""
    return json_bytes(
        {"metric": metric, "group": group, "version": version, "kind": SHOWN, "at": iso(at), "epsilon": epsilon}
    )


def clip_bytes(metric: str, version: int, group: str | None, at: int, high: float, epsilon: float) -> bytes:
    """An activation as published: from this tick on a key's values are clipped to `high`; epsilon chose it."""
    return json_bytes(
        {
            "metric": metric, "group": group, "version": version, "kind": CLIP, "at": iso(at), "high": high,
            "epsilon": epsilon,
        }
    )  # fmt: skip


def with_level(fields: Any) -> Any:
    """The fields of an activation, with what stands for the level and prior of a kind that has none.

    -1 and none for a key that is shown, -2 and its upper end for a range that values are clipped to.

    >>> with_level({"kind": "shown"})["level"], with_level({"level": 3})["level"]
    (-1, 3)
    >>> with_level({"kind": "clip", "high": 20.0})
    {'kind': 'clip', 'high': 20.0, 'level': -2, 'prior': 20.0}
    """
    match fields:
        case {"kind": "shown"}:
            return fields | {"level": OF_KEY, "prior": None}
        case {"kind": "clip"}:
            return fields | {"level": OF_CLIP, "prior": fields.get("high")}
    return fields


def activation_name(level: int) -> str:
    """What an activation is called in messages.

    >>> activation_name(3), activation_name(-1), activation_name(-2)
    ('activation of level 3', 'activation that shows it', 'activation of its clip range')
    """
    special = {OF_KEY: "activation that shows it", OF_CLIP: "activation of its clip range"}
    return special.get(level, f"activation of level {level}")


def dead_letter_bytes(reason: str, metric: str, topic: str, partition: int, offset: int, raw: bytes | None) -> bytes:
    """A refused record with its reason and origin; beyond 64 KiB, only its beginning, length and SHA-256."""
    fields: dict[str, Any] = {
        "reason": reason, "metric": metric, "topic": topic, "partition": partition, "offset": offset,
        "record": None if raw is None else raw[:MAX_DEAD_LETTER_BYTES].decode("utf-8", "replace"),
    }  # fmt: skip
    if raw is not None and len(raw) > MAX_DEAD_LETTER_BYTES:
        fields |= {"length": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
    return json_bytes(fields)
