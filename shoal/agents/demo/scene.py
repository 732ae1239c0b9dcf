"""What one demo has of its own; all else they share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import RenderableType

from shoal.agents.demo.progress import Due, Progress
from shoal.models.config.file import Config


@dataclass(frozen=True)
class Told:
    """What a demo says at its end."""

    lines: list[str]  # for people
    files: dict[str, Path]  # what was drawn, by what it is called
    final: dict[str, Any]  # for programs


class Scene(Protocol):
    """One demo's events, configuration, table and picture. Only a scene knows the truth."""

    @property
    def events(self) -> str:
        """What the events are called."""
        ...

    @property
    def file(self) -> Path:
        """Where they are."""
        ...

    @property
    def count(self) -> int:
        """How many."""
        ...

    @property
    def rate(self) -> float:
        """How many of them to send in a second: a worker could take more, the eye could not."""
        ...

    def config(self, brokers: str) -> str:
        """The configuration, as text."""
        ...

    def due(self, config: Config) -> Due:
        """What must have been released when everything is."""
        ...

    def line(self, progress: Progress) -> str:
        """How it stands, in a line; empty before the first release."""
        ...

    def board(self, progress: Progress) -> RenderableType:
        """How it stands, on a terminal."""
        ...

    def look_back(self, progress: Progress, place: Path, verdict: str) -> Told:
        """Draw everything into the folder of the demo, and tell it."""
        ...
