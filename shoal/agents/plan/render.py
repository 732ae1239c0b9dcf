"""A plan as tables, for a terminal of any width."""

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Drawn
from rich.text import Text

from shoal.mechanisms.forecast.plan import NOT_PRIVATE, Plan
from shoal.mechanisms.forecast.table import Table
from shoal.models.printable import printable

WRAPPED = 16  # characters that a column whose text wraps has at least
PADDING = 3  # characters around each column; there is one more before the first


def rendered(plan: Plan, width: int) -> Group:
    """A whole plan, for a terminal of this width."""
    first, *others = plan.tables
    parts: list[RenderableType] = [] if plan.private else [Text(NOT_PRIVATE, style="bold red")]
    parts += [_text(plan.title, "bold"), _text(f"for {plan.workload}"), Text(), *_table(first, width), Text()]
    parts.append(_text(f"recommended: {plan.recommended}", "bold"))
    parts += [Padding(_text(line), (0, 0, 0, 1)) for line in plan.advice]
    parts.append(Text())
    for table in others:
        parts += _table(table, width)
    return Group(*parts)


def _table(table: Table, width: int) -> list[RenderableType]:
    shown = fitting(table, width)
    drawn = Drawn(
        box=box.SIMPLE_HEAD, title=table.title, title_justify="left", title_style="", pad_edge=True, padding=(0, 1)
    )
    for index in shown:
        column = table.columns[index]
        justify = "left" if column.is_text else "right"
        drawn.add_column(column.head, justify=justify, no_wrap=not column.wraps)  # type: ignore[arg-type]
    for line in table.lines:
        drawn.add_row(*(printable(line.cells[index]) for index in shown), style="bold" if line.is_bold else "")
    remarks = Padding(Text("\n".join(table.remarks), style="dim"), (0, 0, 0, 1))
    return [drawn, remarks] if table.remarks else [drawn]


def _text(line: str, style: str = "") -> Text:
    """A line without control characters: it may name a group of the data."""
    return Text(printable(line), style=style)


def fitting(table: Table, width: int) -> list[int]:
    """The columns that there is room for: of those that need not be shown the first ranks.

    >>> from shoal.mechanisms.forecast.table import Column, Line, Table
    >>> table = Table("", [Column("name"), Column("more", 2), Column("noise", 1)], [Line(["sharp", "x", "0.25"])])
    >>> fitting(table, 80), fitting(table, 20), fitting(table, 10)
    ([0, 1, 2], [0, 2], [0])
    """
    shown = list(range(len(table.columns)))
    while 1 + sum(_width(table, index) for index in shown) > width:
        last = max(shown, key=lambda index: table.columns[index].rank)
        if not table.columns[last].rank:
            break
        shown.remove(last)
    return shown


def _width(table: Table, index: int) -> int:
    column = table.columns[index]
    longest = max(len(text) for text in (column.head, *(line.cells[index] for line in table.lines)))
    return PADDING + (min(longest, WRAPPED) if column.wraps else longest)
