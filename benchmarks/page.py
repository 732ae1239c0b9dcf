"""A report as a page: explanations, tables and, beside them, the figures as JSON and the pictures.

A full run keeps tables and figures in benchmarks/results and pictures in docs/images, where the guides show them.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import figures

PICTURES = figures.ROOT / "docs" / "images"


@dataclass(frozen=True)
class Page:
    """All that is shown of one run."""

    name: str  # of its files
    title: str
    rules: str  # what is measured, and how the tables are to be read
    tables: str
    effort: str  # how long it took
    data: Mapping[str, Any]  # the figures, as JSON has them
    draw: Callable[[Path], None]  # the pictures, into a folder

    def publish(self, out: Path | None, *, keep: bool) -> None:
        """Print the tables; write everything into the folder `out`, or keep it where a full run belongs."""
        folder = out or (figures.RESULTS if keep else None)
        figures.publish(self.name, self.title, self.tables, self.data, folder)
        if folder is not None:
            self.show(out)

    def show(self, out: Path | None = None) -> None:
        """Write tables and pictures beside the figures that were kept before."""
        folder, pictures = (out, out / "images") if out else (figures.RESULTS, PICTURES)
        pictures.mkdir(parents=True, exist_ok=True)
        self.draw(pictures)
        ran = json.loads((folder / f"{self.name}.json").read_text())
        measured = f"{ran['machine']}; {ran['versions']}; {self.effort}."
        parts = (f"# {self.title}", self.rules.strip(), self.tables, measured)
        (folder / f"{self.name}.md").write_text("\n\n".join(parts) + "\n")


def kept(name: str) -> dict[str, Any] | None:
    """The figures of the last full run."""
    path = figures.RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def number(value: float | None, digits: int = 3) -> str:
    """So many digits, or all before the point.

    >>> number(12.345), number(131072), number(2.4), number(999.7), number(0.012345), number(0.00001), number(0.0)
    ('12.3', '131,072', '2.40', '1,000', '0.0123', '1.0e-05', '0')
    >>> number(99.7, 2), number(2, 2), number(None)
    ('100', '2.0', '–')
    """
    if value is None:
        return "–"
    if not value:
        return "0"
    if abs(value) >= 10**digits - 0.5:
        return f"{value:,.0f}"
    return f"{value:.1e}" if abs(value) < 1e-4 else f"{value:#.{digits}g}".rstrip(".")


def verdict(met: bool) -> str:
    """Whether a target is met."""
    return "met" if met else "**missed**"
