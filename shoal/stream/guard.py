"""Decides what a release partition may publish: it first reproduces all that is published, and only then anything new.

A key may be used for one stream only. Up to what the audit log had when the worker started, a release may only be
computed again and must be the same bytes. What the log lacks is withheld, and with it all that the partition makes
after it. It waits until the partition has made again what the log has of its own groups, and until the ledger says the
same of all other partitions. Otherwise a second stream in other groups would meet no release that is published, and
still cost its users more than they have.

While a partition withholds something and has not yet made again what it must, it goes on, for what it must make may
come after what is withheld. When it has, it waits for the others. Nothing withheld is committed: a crash leaves the
last transaction, from which all of it is made again. What can fail: the input is a second stream. Then other bytes are
a fail-stop, or the partition waits for ever for a release that never comes.

`shoal/agents/audit/continuation.py` does the same for file runs; `owners.py` there says who may add to a version.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NoReturn

import orjson

from shoal.models.errors import FailStop
from shoal.models.records import activation_name, with_level
from shoal.models.times import time_of_text
from shoal.stream.group import Activated, GroupState

OTHER_STREAM = "Use a new metric version, or restore the topics that the log belongs to"
MAX_WITHHELD = 500_000  # releases; a transaction of so many takes some seconds
# What the ledger or topic already holds for (label, group, seq); None: nothing.
Published = Callable[[str, str, int], bytes | None]


@dataclass(frozen=True)
class PublishedBefore:
    """What the audit log had, when the worker started, of the groups of one partition; and what it says of others."""

    heads: dict[str, dict[str, int]]  # label -> group -> seq of its last release
    is_clear: Callable[[str], bool]  # whether all partitions have made again what file runs published of a version
    activation: Callable[[str, str, int], bytes | None]  # of (label, group, level)
    # label -> group -> levels that file runs have activated, each in one transaction with a release
    levels: dict[str, dict[str, set[int]]] = field(default_factory=dict)


class Guard:
    """The guard of one partition."""

    def __init__(self, published: Published | None, before: PublishedBefore | None) -> None:
        self._published = published
        self._before = before
        self._heads = {label: dict(heads) for label, heads in before.heads.items() if heads} if before else {}
        levels = before.levels if before else {}
        self._levels = {(label, group): set(due) for label, groups in levels.items() for group, due in groups.items()}
        self._new: set[str] = set()  # labels of what is new since the last transaction

    def restored(self, label: str, group: str, seq: int) -> None:
        """The state has released so many of a group."""
        last = self._heads.get(label, {}).get(group)
        if last is not None and seq >= last:
            self._forget(label, group)
        elif seq:
            self._settle(label, group, seq)

    def _settle(self, label: str, group: str, seq: int) -> None:
        """What is published until a release that is committed was held against the log before its commit."""
        due = self._levels.get((label, group), set())
        if due and self._published is not None and self._before is not None:
            until = _instant(self._published(label, group, seq))
            due -= {level for level in due if _instant(self._before.activation(label, group, level)) <= until}

    def _forget(self, label: str, group: str) -> None:
        self._levels.pop((label, group), None)
        del self._heads[label][group]
        if not self._heads[label]:
            del self._heads[label]

    def check(self, state: GroupState, release: bytes, activations: Iterable[Activated]) -> None:
        """Hold a release that was just made, and what it activated, against what is published.

        Raises:
            FailStop: something else is published in its place.
        """
        label, group, seq = state.metric.label, state.group or "", state.seq
        stored = None if self._published is None else self._published(label, group, seq)
        if stored is not None and stored != release:
            _refuse(label, f"release {seq}")
        last = self._heads.get(label, {}).get(group, 0)
        if last and seq <= last:
            self._compare(label, group, activations)
            if seq == last:
                for level in sorted(self._levels.get((label, group), ())):
                    raise FailStop(
                        f"metric {label}: the {activation_name(level)} is published and is not made again; the key "
                        f"would meet a second stream. {OTHER_STREAM}"
                    )
                self._forget(label, group)
        elif not self._may_go_on(label):
            self._new.add(label)

    def _compare(self, label: str, group: str, activations: Iterable[Activated]) -> None:
        """Activations that come with a release which is made again."""
        for activated in activations:
            level = with_level(orjson.loads(activated.value))["level"]
            self._levels.get((label, group), set()).discard(level)
            stored = self._before.activation(label, group, level) if self._before else None
            if stored is not None and stored != activated.value:
                _refuse(label, f"the {activation_name(level)}")
            if stored is None and not self._may_go_on(label):
                self._new.add(label)  # the log of workers may lack it for a while, that of a file run does not

    def _may_go_on(self, label: str) -> bool:
        return self._before is None or (label not in self._heads and self._before.is_clear(label))

    def has_made_again(self, label: str) -> bool:
        """Whether this partition has made again what the log has of a version in its groups."""
        return label not in self._heads

    @property
    def withheld(self) -> set[str]:
        """Versions for which everything since the last transaction is withheld."""
        return {label for label in self._new if not self._may_go_on(label)} if self._new else set()

    def goes_on(self, releases: int) -> bool:
        """Whether a partition that withholds so many releases works on, to make again what it must."""
        return bool(self._heads) and releases < MAX_WITHHELD

    def taken(self) -> None:
        """A transaction has all that was made until now."""
        self._new.clear()


def check_last(partition: int, count: int, chain: bytes, headers: Mapping[str, bytes] | None) -> None:
    """Hold the last committed release of a partition against how many its state has published, and their chain.

    Raises:
        FailStop: they differ: a topic was re-created, truncated, or written by somebody else.
    """
    expected = {"n": b"%d" % count, "chain": chain.hex().encode()}
    if headers is None:
        if count == 0:
            return
        found = "holds no release"
    elif dict(headers) == expected:
        return
    else:
        found = f"ends with release {headers.get('n', b'?').decode('ascii', 'replace')} of another history"
    raise FailStop(
        f"releases partition {partition} {found}, the state has published {count}; "
        "a topic was re-created, truncated or restored: bring back the topics that belong together"
    )


def _refuse(label: str, what: str) -> NoReturn:
    raise FailStop(
        f"metric {label}: {what} is already published with other bytes; the key would meet a second stream. "
        f"{OTHER_STREAM}"
    )


def _instant(published: bytes | None) -> int:
    """Of a release or an activation, in microseconds."""
    return time_of_text(orjson.loads(published or b"{}").get("at", "")) or 0
