"""Tables of a plan, which know no terminal's width, and sections: values of a setting as a table and for programs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from shoal.mechanisms.forecast.point import OVER_TIME, Point
from shoal.mechanisms.words import number, percent


class Column(NamedTuple):
    """A column of a table."""

    head: str
    rank: int = 0  # 0: it is always shown; of others those of high rank go first where there is no room
    is_text: bool = False  # on the left; numbers are on the right
    wraps: bool = False


class Line(NamedTuple):
    """A row of a table."""

    cells: Sequence[str]
    is_bold: bool = False


@dataclass(frozen=True)
class Table:
    """A table, and the remarks below it."""

    title: str
    columns: Sequence[Column]
    lines: Sequence[Line]
    remarks: Sequence[str] = ()


AMOUNTS: Mapping[str, Callable[[Point], str]] = {
    "samples": lambda point: number(point.samples),
    "left out": lambda point: percent(point.left_out),
    "noise": lambda point: number(point.noise_sd),
    "noise of count": lambda point: number(point.count_sd),
    "noise of value": lambda point: number(point.noise_sd),
    "bias": lambda point: number(abs(point.bias)),
    "error": lambda point: number(point.error),
}
MARK = Column("", is_text=True)  # for words such as "configured"


@dataclass(frozen=True)
class Row:
    """A value that was tried, and the release that it leads to."""

    value: str  # in words, for the first column
    fields: Mapping[str, Any]  # for programs, before the numbers of the release
    point: Point
    is_bold: bool = False
    cells: Mapping[str, str] = field(default_factory=dict)  # of columns that are not amounts of a release

    def cell(self, head: str) -> str:
        """The text below a head."""
        return self.cells[head] if head in self.cells else AMOUNTS[head](self.point)


class Section(NamedTuple):
    """The values of one setting: a table, and a list for programs under a key."""

    key: str
    table: Table
    fields: Sequence[Mapping[str, Any]]

    @classmethod
    def of(
        cls, key: str, title: str, columns: Sequence[Column], rows: Sequence[Row],
        names: tuple[str, ...] = OVER_TIME, remarks: Sequence[str] = (),
    ) -> "Section":  # fmt: skip
        """A row for each value; the first column has the value, the others what their heads name."""
        lines = [Line([row.value, *(row.cell(column.head) for column in columns[1:])], row.is_bold) for row in rows]
        return cls(
            key, Table(title, columns, lines, remarks), [{**row.fields, **row.point.fields(names)} for row in rows]
        )


def marks(*conditions: tuple[bool, str]) -> str:
    """The texts whose conditions hold.

    >>> marks((True, "configured"), (False, "recommended"))
    'configured'
    """
    return ", ".join(text for holds, text in conditions if holds)
