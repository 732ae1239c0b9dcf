"""Holds the contributions topic against the events: the same rows, however they were cut into messages.

In come two sets of messages, those that the events yield and those of the topic; out come findings. What is kept of
either is a fingerprint per source partition, contributions partition and group, not the rows:

    blocks    digest of the rows, in order; where a message ends does not matter
    partials  sum over rows of samples * a(tick) + total * b(tick) mod 2**127 - 1, with a and b drawn for this audit:
              how a tick's samples are split into partials does not matter, and any other sums give another
              fingerprint but for a chance of 2**-127
    clocks    never go back, and have entered the step that the last event entered
"""

import secrets
from collections.abc import Iterable, Mapping
from hashlib import blake2b

import orjson

from shoal.agents.replaying.matching import Findings
from shoal.models.records import Message, Row
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
        self.samples += sum(row[4] for row in rows)
        self._digest.update(orjson.dumps(rows)[1:-1] + b",")

    @property
    def print(self) -> bytes:
        """Equal for equal rows."""
        return self._digest.digest()


class Partials:
    """Rows whose sums per tick count.

    >>> split, whole = Partials(), Partials()
    >>> split.add([(60, "", 0, 0, 2, 30), (0, "", 0, 0, 1, 5), (60, "", 0, 0, 1, 12)])
    >>> whole.add([(0, "", 0, 0, 1, 5), (60, "", 0, 0, 3, 42)])
    >>> split.print == whole.print, split.samples
    (True, 4)
    """

    __slots__ = ("_sum", "samples")

    def __init__(self) -> None:
        self.samples = 0
        self._sum = 0

    def add(self, rows: Iterable[Row]) -> None:
        """Add rows."""
        for time, pseudonym, number, level, samples, total in rows:
            name = orjson.dumps([time, pseudonym, number, level])
            drawn = blake2b(name, key=_SALT, digest_size=32).digest()
            a, b = int.from_bytes(drawn[:16], "big"), int.from_bytes(drawn[16:], "big")
            self._sum = (self._sum + a * samples + b * total) % PRIME
            self.samples += samples

    @property
    def print(self) -> bytes:
        """Equal for equal sums."""
        return self._sum.to_bytes(16, "big")


class Sent:
    """What one source partition sent to one contributions partition."""

    def __init__(self, plan: TopicPlan) -> None:
        self.messages = 0
        self.groups: dict[str, Blocks | Partials] = {}
        self.told: dict[str, int | None] = {}
        self.went_back = False
        self._merges = {metric.label: metric.merges and metric.every is not None for metric in plan.metrics}
        self._retired = plan.retired

    def add(self, message: Message) -> None:
        """Take in the next message; what it says of retired metrics is left out."""
        self.messages += 1
        for key, rows in message.contributions.items():
            label = key.partition("|")[0]
            if label not in self._retired:
                found = self.groups.get(key)
                if found is None:
                    found = self.groups[key] = Partials() if self._merges.get(label) else Blocks()
                found.add(rows)
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
