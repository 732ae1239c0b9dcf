"""Everything that is stored of a case: entries of bytes, by kind."""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

from tests.golden.case import Case
from tests.golden.driver import TWIN, Cluster, FileOutcome, Lane, replay, run_file
from tests.golden.events import end_of
from tests.golden.schedule import first_half, second_half

KINDS = (
    "file-releases", "file-activations", "file-dead-letters", "messages", "releases", "activations", "dead-letters",
    "bound-changelog", "bound-state", "release-changelog", "release-state",
)  # fmt: skip
IN_FULL = ("file-releases", "messages")  # stored as they are, of some cases
Entry = tuple[bytes | None, ...]


@dataclass(frozen=True)
class Outcome:
    """What a case makes."""

    entries: dict[str, list[Entry]]  # by kind, in order
    counters: dict[str, int]  # of the file run
    verdict: list[str]  # of a replay


def outcome_of(case: Case, lane: Lane = TWIN) -> Outcome:
    """Run the case over a file and over a cluster, in the lane that is asked for."""
    return _outcome(case, lane)


@cache
def _outcome(case: Case, lane: Lane) -> Outcome:
    file = run_file(case, lane)
    cluster = Cluster(case, end_of(case.stream), lane)
    first_half(cluster, at_once=case.at_once)
    second_half(cluster)
    return Outcome(_of_file(file) | _of_cluster(cluster), file.counters, replay(cluster))


def digest(entries: list[Entry]) -> str:
    """How many there are, and SHA-256 of all, each part after its length."""
    found = sha256()
    for entry in entries:
        found.update(len(entry).to_bytes(8, "big"))
        for part in entry:
            found.update((2**64 - 1 if part is None else len(part)).to_bytes(8, "big") + (part or b""))
    return f"{len(entries)} {found.hexdigest()}"


def _of_file(file: FileOutcome) -> dict[str, list[Entry]]:
    return {
        "file-releases": [(value,) for value in file.releases],
        "file-activations": [(value,) for value in file.activations],
        "file-dead-letters": [(value,) for value in file.dead_letters],
    }


def _of_cluster(cluster: Cluster) -> dict[str, list[Entry]]:
    written = cluster.written
    return {
        "messages": [(_number(home), value) for home, value in written.messages],
        "releases": [
            (_number(home), key, value, *(part for name, held in headers for part in (name.encode(), held)))
            for home, key, value, headers in written.releases
        ],
        "activations": [(_number(home), key, value) for home, key, value in written.activations],
        "dead-letters": [(value,) for value in written.dead_letters],
        "bound-changelog": [(_number(index), *entry) for index, entry in written.bound_entries],
        "bound-state": _state(one.changelog for one in cluster.sources),
        "release-changelog": [(_number(index), *entry) for index, entry in written.release_entries],
        "release-state": _state(one.changelog for one in cluster.homes),
    }


def _state(changelogs: Any) -> list[Entry]:
    """What compaction leaves of each partition, by key."""
    return [(_number(index), *item) for index, one in enumerate(changelogs) for item in sorted(one.items())]


def _number(number: int) -> bytes:
    return b"%d" % number
