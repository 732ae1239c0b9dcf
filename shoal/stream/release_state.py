"""The state of release as its changelog holds it: what each kind of key is, and whether all of it is there.

A changelog has a mark, and these kinds of keys: heads of groups, what their releasers keep, runs of rows and chunks of
cells that wait for their tick, how far closings have got, and hidden groups. The mark says how many keys there are of
each, with a digest (`table/inventory.py`), and has a seal of its own. A restored state must have exactly these, with
the values that were written last: compaction leaves an older value where the last one was lost. What is lost of the
end, mark included, leaves an earlier state, which is whole; the last release tells whether anything was published since
(`guard.py`). Each release has raised the mark's `count` and its group's `seq` by one, so that the heads must add up to
it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NoReturn

import orjson

from shoal.mechanisms.groups import Change, Groups
from shoal.mechanisms.statistic import Contribution
from shoal.models.errors import FailStop
from shoal.models.json_bytes import json_of_each
from shoal.stream.group import GroupState
from shoal.stream.state_mark import FORMAT, MARK, REMEDY, check_mark
from shoal.stream.table.inventory import (
    HEAD,
    HIDDEN,
    KEPT,
    KINDS,
    REACHED,
    SEALED,
    UNTOLD,
    Entry,
    HiddenEntry,
    Inventory,
)
from shoal.stream.table.seals import checksum, is_whole, is_whole_mark, sealed_mark, unsealed
from shoal.stream.tick_queue import Closing

HEADS, HEADS_SEAM = 1000, "}, {"  # heads that are made into JSON by one call, and what is between two of them


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

    def sort_in(self, name: bytes, value: bytes) -> None:
        """One entry that is not the mark."""
        kind, (key, *rest) = name[:1], orjson.loads(name[1:])
        if kind == HEAD:
            self.heads[key], self.sums[key] = json.loads(value), checksum(name, value)
        elif kind == KEPT:
            self.kept.setdefault(key, []).append(Contribution(*orjson.loads(unsealed(value))))
        elif kind == REACHED:
            self.reached.append((key, value))
        elif kind == HIDDEN:
            self.hidden.append((key, rest[0] if rest else None, json.loads(unsealed(value))))
        else:
            self.waiting.append((key, name, unsealed(value) if kind in SEALED else value))


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


def hidden_entries(groups_of: Mapping[str, Groups]) -> list[HiddenEntry]:
    """What changed of the hidden groups of each metric."""
    entries: list[HiddenEntry] = []
    for label, groups in groups_of.items():
        for group, tick, value, before in groups.hidden_changes():
            key = f"{label}|{group}"
            name = HIDDEN + orjson.dumps([key] if tick is None else [key, tick])
            # Integers may have any size.
            entries.append(HiddenEntry(name, None if value is None else json.dumps(value).encode(), before))
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
        found = Restored(self._mark(raw_mark))
        self._check_seals(items)
        self._inventory = Inventory.of(items)
        self._check_counts(found.mark["held"])
        for name, value in items.items():
            if name != MARK:
                found.sort_in(name, value)
        self._check_heads(found)
        return found

    def _mark(self, raw_mark: bytes) -> dict[str, Any]:
        try:
            mark: dict[str, Any] = orjson.loads(raw_mark)
        except orjson.JSONDecodeError:
            self._refuse("a mark that was altered")
        check_mark(self._where, mark, self._log_id)
        if not is_whole_mark(raw_mark):
            self._refuse("a mark that was altered")
        return mark

    def _check_seals(self, items: Mapping[bytes, bytes]) -> None:
        """No record that was written once may be another."""
        for name, value in items.items():
            if name[:1] in SEALED and not is_whole(name, value):
                self._refuse(f"{KINDS[name[:1]]} that were altered")

    def _check_counts(self, due: Mapping[str, Any]) -> None:
        """Exactly what the mark counted must be there."""
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
        hidden: Iterable[HiddenEntry],
        groups: Iterable[tuple[str, GroupState]],
        mark: dict[str, Any],
    ) -> list[Entry]:
        """One transaction's entries: those given, those of hidden groups, the heads of groups that released, and the
        mark.
        """
        written = self._inventory.note(entries) + self._inventory.note_hidden(hidden)
        for name, value, state in head_entries(groups):
            after = checksum(name, value)
            self._inventory.note_head(state.written, after)
            state.written = after
            written.append((name, value))
        counted = mark | {"format": FORMAT, "held": self._inventory.dump()}
        written.append((MARK, sealed_mark(orjson.dumps(counted))))
        return written
