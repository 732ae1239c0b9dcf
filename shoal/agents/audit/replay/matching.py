"""Compares what a partition contains with what must be in it, in order and byte for byte.

Takes two streams, the expected records and those found, and reports differences, missing records and unexpected ones.
Records are paired by name (group and seq, or group and level), so that one forged or lost record does not affect the
comparison of those that follow. Nothing here knows Kafka, and memory is bounded by how far the two streams are apart.
"""

import hashlib
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from shoal.agents.audit.log import Group
from shoal.agents.audit.verify import Finding
from shoal.models.digests import FIRST
from shoal.models.records import activation_name, with_level
from shoal.models.version import VersionId

AHEAD = 20_000  # how many expected records a found one is looked for in, before nobody is said to expect it
KEPT = 50  # findings of one kind that are told one by one

Name = tuple[Group, int]  # an activation's number is its level


@dataclass
class Findings:
    """All findings of an audit: of each kind the first ones, and how many more there were."""

    kept: list[Finding] = field(default_factory=list)
    counts: Counter[tuple[str, bool]] = field(default_factory=Counter)

    def add(self, kind: str, where: str, message: str, *, failure: bool = True) -> None:
        self.counts[kind, failure] += 1
        if self.counts[kind, failure] <= KEPT:
            self.kept.append(Finding(kind, where, message, failure))

    def all(self) -> list[Finding]:
        """All findings in the order in which they were added."""
        more = [
            Finding(kind, "and", f"{count - KEPT} more of this kind", failure)
            for (kind, failure), count in self.counts.items()
            if count > KEPT
        ]
        return [*self.kept, *more]


class ExpectedRecord(NamedTuple):
    """A record that must be there."""

    name: Name
    key: bytes
    value: bytes


class FoundRecord(NamedTuple):
    """A record that is there."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]


def name_of(app: str, value: bytes | None, number: str) -> Name | None:
    """The name in a release (`number` is "seq") or an activation ("level"); None if it is neither."""
    try:
        fields = with_level(orjson.loads(value or b""))
        metric, version, group, count = (fields[name] for name in ("metric", "version", "group", number))
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    right = isinstance(metric, str) and isinstance(group, str | None) and isinstance(version, int)
    return (Group(VersionId(app, metric, version), group or ""), count) if right and isinstance(count, int) else None


class Matcher:
    """Compares one partition. Feed it by `expect` and `find`, and call `settle` in between."""

    number = "level"

    def __init__(self, app: str, where: str, findings: Findings, retired: frozenset[VersionId] = frozenset()) -> None:
        self.app = app
        self.where = where
        self.findings = findings
        self.found = self.confirmed = 0
        self.accepted: list[tuple[ExpectedRecord, int | None]] = []  # and the offset, None where it is missing
        self._retired = retired  # versions that nothing is expected of
        self._expected: deque[ExpectedRecord] = deque()
        self._names: set[Name] = set()
        self._found: deque[FoundRecord] = deque()

    @property
    def hungry(self) -> bool:
        """Whether the next record of the topic is wanted."""
        return bool(self._expected) and not self._found

    def expect(self, records: Iterable[ExpectedRecord]) -> None:
        for record in records:
            self._expected.append(record)
            self._names.add(record.name)

    def find(self, records: Iterable[FoundRecord]) -> None:
        self._found.extend(records)

    def take_accepted(self) -> list[tuple[ExpectedRecord, int | None]]:
        """What is in the topic or should be, with its offset or None, since the last call."""
        accepted, self.accepted = self.accepted, []
        return accepted

    @property
    def over(self) -> bool:
        """Whether what comes next in the topic is younger than what is compared."""
        return bool(self._found) and self.enough(self._found[0])

    def skip_missing(self, required: int) -> None:
        """The topic is at its end: report what must be there by now. Memory stays bounded."""

    def settle(self, *, complete: bool = False) -> None:
        """Pair what can be paired; `complete`: nothing more is expected."""
        while self._found and not self.over:
            record = self._found[0]
            first = self._expected[0] if self._expected else None
            name = first.name if first and first.value == record.value else name_of(self.app, record.value, self.number)
            if first is not None and name == first.name:
                self._pair(self._take(), self._found.popleft())
            elif name is not None and name[0].version in self._retired:
                self.pass_by(self._found.popleft())
            elif name in self._names:
                self._miss(self._take())
            elif complete or len(self._expected) >= AHEAD:
                self._refuse(self._found.popleft(), name)
            else:
                return

    def enough(self, record: FoundRecord) -> bool:
        """Whether a record is younger than what is compared."""
        return False

    def _take(self) -> ExpectedRecord:
        first = self._expected.popleft()
        self._names.discard(first.name)
        return first

    def _pair(self, expected: ExpectedRecord, record: FoundRecord) -> None:
        self.found += 1
        self.accepted.append((expected, record.offset))
        problems = list(self.differences(expected, record))
        for kind, message in problems:
            self.findings.add(kind, self._where(expected.name), message)
        self.confirmed += not problems

    def differences(self, expected: ExpectedRecord, record: FoundRecord) -> Iterable[tuple[str, str]]:
        """Yield kind and message of everything in which the two differ."""
        if record.value != expected.value:
            yield "changed", "the topic has another value than contributions and key yield"
        if record.key != expected.key:
            yield "changed", "its record key is not that of its metric and group"

    def _miss(self, expected: ExpectedRecord) -> None:
        self.missed(expected)
        self.accepted.append((expected, None))
        self.findings.add("missing", self._where(expected.name), "contributions and key yield it; the topic lacks it")

    def missed(self, expected: ExpectedRecord) -> None:
        """Note that an expected record is not there."""

    def pass_by(self, record: FoundRecord) -> None:
        """Skip a record of a retired version, about which nothing can be said."""

    def _refuse(self, record: FoundRecord, name: Name | None) -> None:
        self.found += 1
        where = f"{self.where} offset {record.offset}" if name is None else self._where(name)
        self.findings.add("forged", where, f"contributions and key do not yield what is at offset {record.offset}")

    def _where(self, name: Name) -> str:
        group, number = name
        what = activation_name(number) if self.number == "level" else f"release {number}"
        return f"{self.where} {group} {what}"


class ActivationMatcher(Matcher):
    """A partition of the activations topic; records from offset `end` on may be younger than the contributions."""

    def __init__(self, app: str, where: str, findings: Findings, retired: frozenset[VersionId], end: int) -> None:
        super().__init__(app, where, findings, retired)
        self._end = end

    def _refuse(self, record: FoundRecord, name: Name | None) -> None:
        if record.offset < self._end:
            super()._refuse(record, name)

    def finish(self, unpublished: set[tuple[bytes, str]]) -> None:
        """Report what is left. `unpublished`: key and time of releases whose transaction is still to come."""
        self.settle(complete=True)
        while self._expected:
            if (self._expected[0].key, orjson.loads(self._expected[0].value)["at"]) in unpublished:
                self._expected.popleft()
            else:
                self._miss(self._take())


class ReleaseMatcher(Matcher):
    """A partition of the releases topic: its headers, and where its history was when the state was read.

    The state says how many releases the partition had: `count`, with digest `chain`. What the topic held before the
    state was read, up to offset `end`, must be among them; what is younger is left for the next audit.
    """

    number = "seq"

    def __init__(
        self,
        app: str,
        where: str,
        findings: Findings,
        retired: frozenset[VersionId],
        *,
        end: int,
        count: int,
        chain: str,
    ) -> None:
        super().__init__(app, where, findings, retired)
        self._end, self._state_count, self._state_chain = end, count, chain
        self._count, self._chain = 0, FIRST
        self._taken = 0

    def enough(self, record: FoundRecord) -> bool:
        """Whether it is younger than the state, and was not there before the state was read."""
        return self._count >= self._state_count and record.offset >= self._end

    def _take(self) -> ExpectedRecord:
        self._taken += 1
        return super()._take()

    def differences(self, expected: ExpectedRecord, record: FoundRecord) -> Iterable[tuple[str, str]]:
        """Compare the running number and the chain of the header, too."""
        yield from super().differences(expected, record)
        if not self._follow(record):
            yield "header", "its header does not follow that of the release before it"

    def pass_by(self, record: FoundRecord) -> None:
        """The chain goes through releases of retired versions too."""
        if not self._follow(record):
            self.findings.add("header", f"{self.where} offset {record.offset}", "its header does not follow the last")

    def _follow(self, record: FoundRecord) -> bool:
        """Step to a record; if its header is not what follows, go on from what it says, to tell each break once."""
        headers = dict(record.headers)
        self._count += 1
        self._chain = hashlib.sha256(self._chain + (record.value or b"")).digest()
        if headers == {"n": b"%d" % self._count, "chain": self._chain.hex().encode()}:
            return True
        try:
            count, chain = int(headers["n"]), bytes.fromhex(headers["chain"].decode("ascii"))
        except (KeyError, ValueError):
            return False
        self._count, self._chain = count, chain
        return False

    def missed(self, expected: ExpectedRecord) -> None:
        """The writer of the next header knew this release."""
        self._count += 1
        self._chain = hashlib.sha256(self._chain + expected.value).digest()

    def skip_missing(self, required: int) -> None:
        while self._expected and not self._found and (self._taken < required or self._count < self._state_count):
            self._miss(self._take())

    def finish(self, required: int) -> set[tuple[bytes, str]]:
        """Report what is left; return key and time of the releases whose transaction is still to come.

        `required`: so many of the expected releases must be published; the others may wait for their transaction.
        """
        self.settle(complete=True)
        self._found.clear()
        self.skip_missing(required)
        if (self._count, self._chain.hex()) != (self._state_count, self._state_chain):
            self.findings.add(
                "state", self.where, f"its state knows {self._state_count} releases, and the topic's history is another"
            )
        return {(record.key, orjson.loads(record.value)["at"]) for record in self._expected}
