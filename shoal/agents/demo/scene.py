"""A demo's scene: its own events, metrics, table and picture. The demos share all else."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from shoal.agents.demo.progress import DemoProgress, Due
from shoal.models.config.file import Config

# Between a scene's first line, which says what ran, and its budget and metrics.
DEPLOYMENT = """\

[kafka]
brokers = "%s"
app = "shoal"
partitions = 2

[audit]
url = "sqlite:///shoal.db"

[privacy]
key_file = "shoal.key"
"""


@dataclass(frozen=True)
class Conclusion:
    """The last words of a demo."""

    lines: list[str]  # for people
    files: dict[str, Path]  # what was drawn, by what it is called
    final: dict[str, Any]  # `final` of `--json`


class Scene(ABC):
    """One demo's events, metrics, table and picture. Only a scene knows the truth."""

    events: str  # what its events are called
    file: Path  # where they are
    count: int
    rate: float  # events to send in a second: a worker could take more, the eye could not
    title: str  # the comment with which its configuration begins
    metrics: str  # the configuration from [privacy] epsilon on

    def config(self, brokers: str) -> str:
        """The configuration, as text."""
        return self.title + DEPLOYMENT % brokers + self.metrics

    def beside(self, _folder: Path) -> AbstractContextManager[None]:
        """What else is run in the demo's folder, while its releases are audited."""
        return nullcontext()

    @abstractmethod
    def due(self, config: Config) -> Due:
        """What must have been released when everything is."""

    @abstractmethod
    def line(self, progress: DemoProgress) -> str:
        """The latest releases beside the truth, in a line; empty before the first release."""

    @abstractmethod
    def board(self, progress: DemoProgress) -> RenderableType:
        """The same as a table, for a terminal."""

    @abstractmethod
    def conclude(self, progress: DemoProgress, folder: Path, verdict: str) -> Conclusion:
        """Draw all releases into the demo's folder, and compare them with the truth."""
