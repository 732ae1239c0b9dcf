"""Findings in sections: each line says what was found and, where something is wrong, what to do about it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shoal.models.errors import MissingExtra, ShoalError

OK, WARNING, FAILED, UNCHECKED = "ok", "warning", "failed", "not checked"
# Sections.
BROKERS, RIGHTS, TOPICS, POLICIES, RECORDS = OF_KAFKA = ("brokers", "rights", "topics", "policies", "records")
_WIDEST = len(UNCHECKED)


class Line(NamedTuple):
    """One finding."""

    state: str
    text: str
    remedy: str = ""
    details: tuple[str, ...] = ()  # lines for people; programs find the same in other keys

    @classmethod
    def of(cls, state: str, message: str) -> "Line":
        """A finding from a message, in which what to do stands behind the first semicolon."""
        text, _, remedy = message.partition("; ")
        return cls(state, text, remedy)

    def fields(self) -> dict[str, str]:
        return {"state": self.state, "text": self.text} | ({"remedy": self.remedy} if self.remedy else {})

    def shown(self) -> Iterator[str]:
        yield f"  {self.state:<{_WIDEST}}  {self.text}"
        if self.remedy:
            yield f"  {'':<{_WIDEST}}  -> {self.remedy}"
        yield from self.details


@dataclass(slots=True)
class Section:
    """What was found about one thing."""

    name: str
    lines: list[Line] = field(default_factory=list)

    def ok(self, text: str, *details: str) -> None:
        self.lines.append(Line(OK, text, details=details))

    def warn(self, message: str) -> None:
        self.lines.append(Line.of(WARNING, message))

    def leave(self, why: str) -> None:
        """Say why this was not looked at."""
        self.lines.append(Line(UNCHECKED, why))

    @property
    def warnings(self) -> list[str]:
        """The messages of the warnings, each with its remedy."""
        lines = (line for line in self.lines if line.state == WARNING)
        return [f"{line.text}; {line.remedy}" if line.remedy else line.text for line in lines]

    @property
    def is_failed(self) -> bool:
        return any(line.state == FAILED for line in self.lines)

    def fields(self) -> dict[str, Any]:
        return {"name": self.name, "lines": [line.fields() for line in self.lines]}


class Findings:
    """All sections in the order in which they are shown, and what refused in the order in which it did."""

    def __init__(self, *names: str) -> None:
        self.sections = {name: Section(name) for name in names}
        self.refused: list[ShoalError] = []

    @contextmanager
    def looking_at(self, name: str) -> Iterator[Section]:
        """What is refused inside is a finding of that section, and ends nothing else, but for a missing extra."""
        try:
            yield self.sections[name]
        except MissingExtra:  # nothing is wrong with what is looked at
            raise
        except ShoalError as error:
            self.refuse(name, error)

    def refuse(self, name: str, error: ShoalError) -> None:
        self.sections[name].lines.append(Line.of(FAILED, str(error)))
        self.refused.append(error)

    def fields(self) -> list[dict[str, Any]]:
        return [section.fields() for section in self._told]

    def shown(self) -> Iterator[str]:
        """The lines for a person."""
        for section in self._told:
            yield section.name
            for line in section.lines:
                yield from line.shown()

    @property
    def _told(self) -> list[Section]:
        return [section for section in self.sections.values() if section.lines]


class Released(NamedTuple):
    """Numbers of releases: in the topic, and before the group's offsets."""

    held: int = 0
    passed: int = 0


@dataclass(slots=True)
class Asked:
    """What Kafka was asked: what the ledger is to agree with, and what a person is to be told."""

    partitions: dict[str, int] = field(default_factory=dict)  # none unless everything is as it must be
    warnings: list[str] = field(default_factory=list)
    refused: str | None = None  # why a worker would not start
    released: Released | None = None  # None if the topic of releases was not looked at
    ahead: list[dict[str, Any]] = field(default_factory=list)  # how far a wrong clock can push each metric

    def fields(self) -> dict[str, Any]:
        told = {"kafka": self.refused} if self.refused else {}
        return {"partitions": dict(self.partitions)} | told | ({"times_ahead": self.ahead} if self.ahead else {})
