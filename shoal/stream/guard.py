"""Decides what a release partition may publish: it first reproduces all that is published, and only then anything new.

A key may be used for one stream only. Up to what the audit log had when the worker started, a release may only be
computed again and must be the same bytes. Topics that are older than the log make that happen. What the log lacks is
withheld, and with it all that the partition makes after it, until the partition has made again what the log has of its
own groups. Otherwise a second stream in other groups would meet no release that is published, and still cost its users
more than they have.

While a partition withholds something it goes on, for what it must make may come after what is withheld. Nothing
withheld is committed: a crash leaves the last transaction, from which all of it is made again. What can fail: the input
is a second stream. Then other bytes are a fail-stop, or the partition waits for ever for a release that never comes.

`shoal/agents/audit/continuation.py` does the same for file runs; `owners.py` there says who may add to a version.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from shoal.models.errors import FailStop
from shoal.models.records import activation_name
from shoal.stream.group import Activated, GroupState

OTHER_STREAM = "Use a new metric version, or restore the topics that the log belongs to"
MAX_WITHHELD = 500_000  # releases; a transaction of so many takes some seconds
# What the ledger or topic already holds for (label, group, seq); None: nothing.
Published = Callable[[str, str, int], bytes | None]


@dataclass(frozen=True)
class PublishedBefore:
    """What the audit log had, when the worker started, of the groups of one partition."""

    heads: dict[str, dict[str, int]]  # label -> group -> seq of its last release
    activation: Published  # of (label, group, level)


class Guard:
    """The guard of one partition."""

    def __init__(self, published: Published | None, before: PublishedBefore | None) -> None:
        self._published = published
        self._before = before
        self._heads = {label: dict(heads) for label, heads in before.heads.items() if heads} if before else {}
        self._new: set[str] = set()  # labels of what is new since the last transaction

    def restored(self, label: str, group: str, seq: int) -> None:
        """Record that the restored state has published `seq` releases of a group."""
        last = self._heads.get(label, {}).get(group)
        if last is not None and seq >= last:
            self._forget(label, group)

    def _forget(self, label: str, group: str) -> None:
        del self._heads[label][group]
        if not self._heads[label]:
            del self._heads[label]

    def check(self, state: GroupState, release: bytes, activations: Iterable[Activated]) -> None:
        """Compare a new release and its activations with what is published.

        Raises:
            FailStop: something else is published in its place.
        """
        label, group, seq = state.metric.label, state.group or "", state.seq
        stored = None if self._published is None else self._published(label, group, seq)
        if stored is not None and stored != release:
            _refuse(label, f"release {seq}")
        last = self._heads.get(label, {}).get(group, 0)
        if seq <= last:
            self._compare(label, group, activations)
            if seq == last:
                self._forget(label, group)
        elif label in self._heads:
            self._new.add(label)

    def _compare(self, label: str, group: str, activations: Iterable[Activated]) -> None:
        """Compare the activations that come with a repeated release; the log may lack them for a while."""
        for activated in activations:
            stored = self._before.activation(label, group, activated.level) if self._before else None
            if stored is not None and stored != activated.value:
                _refuse(label, f"the {activation_name(activated.level)}")
            if stored is None:
                self._new.add(label)

    @property
    def withheld(self) -> set[str]:
        """Labels with new releases that wait until the partition has made again what the log has of them."""
        return self._new & self._heads.keys()

    def goes_on(self, releases: int) -> bool:
        """Whether a partition that withholds this number of releases works on, to make again what it must."""
        return bool(self._heads) and releases < MAX_WITHHELD

    def taken(self) -> None:
        """Forget what was new: a committed transaction contains it."""
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
