"""Holds the contributions topic against the events: the same rows, however they were cut into messages.

In come two sets of messages, those that the events yield and those of the topic; out come findings. What is kept of
either is a fingerprint per source partition, contributions partition and group, not the rows:

    blocks    digest of the rows, in order; where a message ends does not matter
    partials  sum over cells of samples * a(tick, cell) + total * b(tick, cell) mod 2**127 - 1, with a and b drawn for
              this audit (of several coordinates, each has a b of its own): how a tick's samples are split into partials
              does not matter, and any other sums give another fingerprint but for a chance of 2**-127
    clocks    never go back, and have entered the step that the last event entered
"""

import secrets
from collections.abc import Iterable, Mapping
from hashlib import blake2b

import orjson

from shoal.agents.replaying.matching import Findings
from shoal.models.records import Message, Partial, Row
from shoal.stream.plan import Clock, TopicPlan

PRIME = 2**127 - 1
_SALT = secrets.token_bytes(32)  # not noise: coefficients that whoever wrote the topic could not know


class Blocks:
    """Rows whose order counts."""

    __slots__ = ("_digest", "samples")

    def __init__(self) -> None:
        self.samples = 0
        self._digest = blake2b(digest_size=32)

    def add(self, rows: Iterable[Row]) -> None:
        """Append rows."""
        rows = list(rows)  # of one group, all of one message
        if not rows:
            return
        self.samples += sum(row[4] for row in rows)
        self._digest.update(orjson.dumps(rows)[1:-1] + b",")

    @property
    def print(self) -> bytes:
        """Equal for equal rows."""
        return self._digest.digest()


class Partials:
    """Partials, whose sums per tick and cell count.

    >>> split, whole = Partials(), Partials()
    >>> split.add([(60, [0, 2, 30]), (0, [0, 1, 5, 7, 1, 2]), (60, [0, 1, 12])])
    >>> whole.add([(0, [7, 1, 2, 0, 1, 5]), (60, [0, 3, 42])])
    >>> split.print == whole.print, split.samples
    (True, 5)
    """

    __slots__ = ("_sum", "samples")

    def __init__(self) -> None:
        self.samples = 0
        self._sum = 0

    def add(self, partials: Iterable[Partial]) -> None:
        """Add partials."""
        for start, flat in partials:
            numbers = iter(flat)
            for cell, samples, total in zip(numbers, numbers, numbers, strict=True):
                self.samples += samples
                for lane, number in enumerate([samples, *total] if isinstance(total, list) else [samples, total]):
                    self._sum = (self._sum + _coefficient(start, cell, lane) * number) % PRIME

    @property
    def print(self) -> bytes:
        """Equal for equal sums."""
        return self._sum.to_bytes(16, "big")


def _coefficient(start: int, cell: int, lane: int) -> int:
    drawn = blake2b(orjson.dumps([start, cell, lane]), key=_SALT, digest_size=16)
    return int.from_bytes(drawn.digest(), "big")


class GroupSent:
    """What was sent of one group."""

    __slots__ = ("blocks", "partials")

    def __init__(self) -> None:
        self.blocks, self.partials = Blocks(), Partials()

    @property
    def print(self) -> tuple[bytes, bytes]:
        """Equal for equal contributions."""
        return self.blocks.print, self.partials.print

    @property
    def samples(self) -> int:
        """In both together."""
        return self.blocks.samples + self.partials.samples


class Sent:
    """What one source partition sent to one contributions partition."""

    def __init__(self, plan: TopicPlan) -> None:
        self.messages = 0
        self.groups: dict[str, GroupSent] = {}
        self.told: dict[str, int | None] = {}
        self.went_back = False
        self._retired = plan.retired

    def add(self, message: Message) -> None:
        """Take in the next message; what it says of retired metrics is left out."""
        self.messages += 1
        for key in message.contributions | message.partials:
            if key.partition("|")[0] not in self._retired:
                found = self.groups.setdefault(key, GroupSent())
                found.blocks.add(message.contributions.get(key, ()))
                found.partials.add(message.partials.get(key, ()))
        for clock, watermark in (message.watermarks or {}).items():
            before = self.told.get(clock)
            self.went_back |= before is not None and (watermark is None or watermark < before)
            self.told[clock] = watermark


def compare(
    findings: Findings, where: str, plan: TopicPlan, yielded: Sent, sent: Sent, clocks: Mapping[str, int | None]
) -> None:
    """Compare what the events yield with the topic; `clocks` is what may be promised after the last event."""
    for key in sorted(yielded.groups.keys() | sent.groups.keys()):
        must, found = yielded.groups.get(key), sent.groups.get(key)
        if must is None or found is None or must.print != found.print:
            said = (
                f"the events yield {must.samples if must else 0} samples, the topic has {found.samples if found else 0}"
            )
            findings.add("contributions", f"{where} {key}", f"contributions are not what the events yield: {said}")
    if sent.went_back:
        findings.add("clock", where, "a watermark went back")
    for clock in plan.clocks:
        reached, told = clocks.get(clock.label), sent.told.get(clock.label)
        if clock.cadences and _steps(clock, reached) != _steps(clock, told):
            findings.add("clock", where, f"the last watermark of clock {clock.label} is not that of the events")


def _steps(clock: Clock, watermark: int | None) -> list[int] | None:
    """A source tells its watermark whenever that enters a new step of some cadence, or with contributions."""
    return None if watermark is None else [watermark // every for every in clock.cadences]
