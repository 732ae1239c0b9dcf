"""The state of release as its changelog holds it: what each kind of key is, and whether all of it is there.

A changelog has a mark, and these kinds of keys: heads of groups, what their releasers keep, runs of rows and chunks of
cells that wait for their tick, and how far closings have got. The mark says of each kind how many keys there are, and a
digest of all that does not depend on their order; both are kept up to date with each entry that is written. A
restored state must have exactly these. Marks of older versions have no counts, but each release has raised the mark's
`count` and its group's `seq` by one, so that the heads must add up to it.

Up to format 1 a worker whose configuration lacked a topic passed over that topic's messages, and its mark forgot how
far it had been read: the next message then had a number that nobody expected. All messages are still in the
contributions. So a state of that time in which a source partition was never heard is read again from the first message
on: what it has is skipped by its number, what it lacks counts now, and releases are those that would have been made.
Marks of later versions need none of this.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any, NoReturn
from zlib import crc32

import orjson

from shoal.mechanisms.groups import Change, Groups
from shoal.mechanisms.statistic import Contribution
from shoal.models.errors import FailStop
from shoal.models.json_bytes import json_of_each
from shoal.models.records import Message
from shoal.stream.clock import Clocks, SourceClock
from shoal.stream.group import GroupState
from shoal.stream.state_mark import MARK, RELEASE_FORMAT, REMEDY, check_mark
from shoal.stream.tick_queue import CHUNK, ROW, RUN, Closing

HEAD, KEPT, REACHED, HIDDEN = b"h", b"k", b"s", b"c"
KINDS = {
    HEAD: "heads of groups",
    KEPT: "kept contributions",
    RUN: "runs of waiting contributions",
    ROW: "waiting contributions",  # as older versions wrote them
    CHUNK: "waiting sums",
    REACHED: "open closings",
    HIDDEN: "hidden groups",
}
# How many there are depends on values: sums fall into cells by their parts, and a window keeps no step whose sum is 0.
# Of hidden groups it tells who is there.
UNTOLD = frozenset({CHUNK, KEPT, HIDDEN})
REWRITTEN = frozenset({CHUNK[0], REACHED[0]})
KIND = itemgetter(0)  # of a key: its first byte
DIGEST_MASK = (1 << 64) - 1
HEADS, HEADS_SEAM = 1000, "}, {"  # heads that are made into JSON by one call, and what is between two of them

Entry = tuple[bytes, bytes | None]


@dataclass(slots=True)
class Restored:
    """What a changelog holds, sorted by kind; groups go by their keys in messages."""

    mark: dict[str, Any]
    heads: dict[str, dict[str, Any]] = field(default_factory=dict)
    kept: dict[str, list[Contribution]] = field(default_factory=dict)
    waiting: list[tuple[str, bytes, bytes]] = field(default_factory=list)  # group's key, name, value
    reached: list[tuple[str, bytes]] = field(default_factory=list)  # label, value
    sums: dict[str, int] = field(default_factory=dict)  # checksums of heads
    hidden: list[tuple[str, int | None, Any]] = field(default_factory=list)  # group's key, tick, value

    @property
    def labels(self) -> set[str]:
        """Of the metrics that it has something of."""
        keys = (*self.heads, *(key for key, *_ in self.waiting), *(key for key, *_ in self.hidden))
        return {key.partition("|")[0] for key in keys}

    def sort_in(self, name: bytes, value: bytes) -> None:
        """One entry that is not the mark."""
        kind, (key, *rest) = name[:1], orjson.loads(name[1:])
        if kind == HEAD:
            self.heads[key], self.sums[key] = json.loads(value), head_sum(name, value)
        elif kind == KEPT:
            self.kept.setdefault(key, []).append(Contribution(*orjson.loads(value)))
        elif kind == REACHED:
            self.reached.append((key, value))
        elif kind == HIDDEN:
            self.hidden.append((key, rest[0] if rest else None, json.loads(value)))
        else:
            self.waiting.append((key, name, value))


class Inventory:
    """How many keys of each kind a changelog has, and the sum of all their checksums.

    Of heads the checksum covers the values too. The other keys are looked at by name: rows and what is kept are written
    once, and of what is written again the latest value comes in one transaction with the mark.

    >>> inventory = Inventory()
    >>> inventory.note([(b"wa", b"1"), (b"wb", b"1"), (b"pc", b"1")])
    >>> inventory.note([(b"wa", None), (b"pc", b"2")])
    >>> inventory.dump() == Inventory.of({b"wb": b"1", b"pc": b"2", MARK: b"{}"}).dump()
    True
    """

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()  # by the kinds' bytes
        self._digest = 0
        self._rewritten: set[bytes] = set()  # names of kinds that are written again, as long as they are there

    @classmethod
    def of(cls, items: Mapping[bytes, bytes]) -> "Inventory":
        """Of a changelog's last values."""
        inventory = cls()
        inventory.note([entry for entry in items.items() if not entry[0].startswith((HEAD, MARK))])
        for name, value in items.items():
            if name.startswith(HEAD):
                inventory.note_head(0, head_sum(name, value))
        return inventory

    def note(self, entries: Iterable[Entry]) -> None:
        """What is written of all kinds but heads; a tombstone is for a key that is there.

        On the way of every contribution that waits: a few passes over all, each in C.
        """
        added: list[bytes] = []
        removed: list[bytes] = []
        for name, value in entries:
            (removed if value is None else added).append(name)
        counts = Counter(map(KIND, added))
        if not REWRITTEN.isdisjoint(counts):
            again = self._rewritten
            added = [name for name in added if name[0] not in REWRITTEN or name not in again]
            again.update(name for name in added if name[0] in REWRITTEN)
            counts = Counter(map(KIND, added))
        self._counts.update(counts)
        self._digest += sum(map(crc32, added))
        if removed:
            self._rewritten.difference_update(removed)
            self._counts.subtract(Counter(map(KIND, removed)))
            self._digest -= sum(map(crc32, removed))

    def note_head(self, before: int, after: int) -> None:
        """A head is written; `before` is the checksum of the one that it replaces, 0 if there is none."""
        self._counts[HEAD[0]] += not before
        self._digest += after - before

    def dump(self) -> dict[str, int]:
        """For the mark: kind -> number of keys, and the digest."""
        counts = {chr(kind): count for kind, count in sorted(self._counts.items()) if count}
        return counts | {"digest": self._digest & DIGEST_MASK}


def head_sum(name: bytes, value: bytes) -> int:
    """The checksum of a head as the changelog has it; never 0."""
    return crc32(value, crc32(name)) | 1 << 32


def head_entries(groups: Iterable[tuple[str, GroupState]]) -> Iterator[tuple[bytes, bytes, GroupState]]:
    """The changelog's key and value of each group's head; the JSON of many is made by one call, and cut again."""
    waiting = iter(groups)
    while some := list(islice(waiting, HEADS)):
        heads = [state.head() for _, state in some]
        cut = json.dumps(heads)[2:-2].split(HEADS_SEAM)
        values = [f"{{{one}}}" for one in cut] if len(cut) == len(heads) else map(json.dumps, heads)
        names = json_of_each([(key,) for key, _ in some])
        for name, value, (_, state) in zip(names, values, some, strict=True):
            yield HEAD + name, value.encode(), state


def changes_of(groups_of: Mapping[str, Groups]) -> dict[str, Change]:
    """What changed of what releasers keep, by the groups' keys."""
    return {f"{label}|{one.group}": one for label, groups in groups_of.items() for one in groups.changes()}


def kept_entries(changes: Mapping[str, Change], keys: Iterable[str]) -> list[Entry]:
    """The same for the changelog, in the order of these keys."""
    return [entry for key in keys if key in changes for entry in _kept_entries(key, changes[key])]


def _kept_entries(key: str, change: Change) -> list[Entry]:
    written, dropped = change.written, change.dropped
    entries: list[Entry] = []
    if written:
        names = _kept_names(key, [(row.level, row.pseudonym) for row in written])
        entries += zip(names, json_of_each(list(map(tuple, written))), strict=True)
    if dropped:
        entries += [(name, None) for name in _kept_names(key, dropped)]
    return entries


def _kept_names(key: str, kept: Sequence[tuple[int, str]]) -> list[bytes]:
    begins = KEPT + orjson.dumps([key])[:-1] + b","
    return [begins + name[1:] for name in json_of_each(kept)]


def hidden_entries(groups_of: Mapping[str, Groups]) -> tuple[list[Entry], list[Entry]]:
    """What changed of the hidden groups of each metric: new and dropped records, and those that replace others."""
    entries: tuple[list[Entry], list[Entry]] = ([], [])
    for label, groups in groups_of.items():
        for group, tick, value, is_new in groups.hidden_changes():
            key = f"{label}|{group}"
            name = HIDDEN + orjson.dumps([key] if tick is None else [key, tick])
            replaces = value is not None and not is_new
            # Integers may have any size.
            entries[replaces].append((name, None if value is None else json.dumps(value).encode()))
    return entries


def reached_entries(closings: Mapping[str, Closing]) -> list[Entry]:
    """Tick and group that the closing of each metric has reached, while the contributions still wait."""
    return [
        (REACHED + orjson.dumps([label]), orjson.dumps(one.reached))
        for label, one in closings.items()
        if one.is_open and one.reached
    ]


class ReleaseChangelog:
    """Reads and writes the changelog of one contributions partition."""

    def __init__(self, where: str, log_id: str) -> None:
        self.counted = False  # whether a state was restored whose mark counts it
        self._where, self._log_id = where, log_id
        self._inventory = Inventory()

    def read(self, items: Mapping[bytes, bytes]) -> Restored | None:
        """Sort the changelog's last values; None if there are none.

        Raises:
            FailStop: the state belongs to another log, is of a newer version, or not all of it is there.
        """
        raw_mark = items.get(MARK)
        if raw_mark is None:
            if items:
                raise FailStop(f"{self._where}: its changelog has state but no mark, which is written last; {REMEDY}")
            return None
        found = Restored(orjson.loads(raw_mark))
        check_mark(self._where, found.mark, self._log_id, RELEASE_FORMAT)
        self._inventory = Inventory.of(items)
        self._check_counts(found.mark)
        for name, value in items.items():
            if name != MARK:
                found.sort_in(name, value)
        self._check_heads(found)
        return found

    def _check_counts(self, mark: Mapping[str, Any]) -> None:
        """Exactly what the mark counted must be there."""
        due = mark.get("held")
        if due is None:
            return  # the mark of an older version
        self.counted = True
        found = self._inventory.dump()
        for kind, name in KINDS.items():
            there, must = (counts.get(kind.decode(), 0) for counts in (found, due))
            if there != must:
                told = kind not in UNTOLD
                self._refuse(f"{there} {name} where {must} are due" if told else f"other {name} than are due")
        if found["digest"] != due["digest"]:
            self._refuse("as many records as are due, but not the same")

    def _refuse(self, what: str) -> NoReturn:
        raise FailStop(f"{self._where}: its changelog has {what}; releases would be wrong: {REMEDY}")

    def _check_heads(self, found: Restored) -> None:
        """Each release raised the count of the partition, and the seq of its group."""
        published, due = sum(head["seq"] for head in found.heads.values()), found.mark["count"]
        if published != due:
            raise FailStop(
                f"{self._where}: the heads of groups in its changelog account for {published} releases, {due} were "
                f"published; releases would be wrong: {REMEDY}"
            )

    def write(
        self,
        entries: list[Entry],
        groups: Iterable[tuple[str, GroupState]],
        mark: dict[str, Any],
        again: Iterable[Entry] = (),
    ) -> list[Entry]:
        """One transaction's entries: those given, those `again` that were there, the heads of groups that released, and
        the mark.
        """
        self._inventory.note(entries)
        entries += again
        for name, value, state in head_entries(groups):
            checksum = head_sum(name, value)
            self._inventory.note_head(state.written, checksum)
            state.written = checksum
            entries.append((name, value))
        entries.append((MARK, orjson.dumps(mark | {"format": RELEASE_FORMAT, "held": self._inventory.dump()})))
        return entries


class Rereading:
    """Up to which offset messages may be in the state although its position is before them."""

    def __init__(self, until: int = 0) -> None:
        self._until = until

    @classmethod
    def of(cls, where: str, mark: Mapping[str, Any], clocks: Clocks, known: Mapping[str, str]) -> "Rereading":
        """For a restored state, with the topics of those metrics of which it has something: label -> topic.

        Raises:
            FailStop: it has something of a topic and forgot how far that was read: to read again would count twice.
        """
        for label, topic in sorted(known.items()):
            if topic not in mark["clocks"]:
                raise FailStop(
                    f"{where}: its state has metric {label} and forgot how far topic {topic} was read, for a worker of "
                    "an older version wrote here with a configuration that lacked it; raise the version of its metrics"
                )
        unheard = any(source.number == 0 for topic in clocks.values() for source in topic.sources)
        begins = unheard and mark.get("format", 1) == 1
        return cls(mark.get("reread", mark["offset"] if begins else 0))

    def position(self, mark: Mapping[str, Any]) -> int:
        """The offset at which the partition reads on: the mark's, or 0 where all is read again."""
        return 0 if self._until and "reread" not in mark else int(mark["offset"])

    def skips(self, offset: int, message: Message, source: SourceClock) -> bool:
        """Whether the state has a message that is read again."""
        return 0 <= offset < self._until and message.number <= source.number

    def mark(self, position: int | None) -> dict[str, int]:
        """What the mark has to say as long as it is not over."""
        return {"reread": self._until} if (position or 0) < self._until else {}
