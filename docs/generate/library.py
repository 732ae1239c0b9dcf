"""The table of docs/reference/library.md: `python -m docs.generate.library`; with `--write` into the page.

Stable names are those of `shoal.mechanisms.__all__`, each with the first line of its docstring. A test compares the
page with what this makes.
"""

import inspect
import sys
from pathlib import Path

import shoal.mechanisms

PAGE = Path(__file__).parents[1] / "reference/library.md"
BEGIN, END = "<!-- table: make reference -->\n", "<!-- end of table -->\n"


def table() -> str:
    """The table, in Markdown."""
    rows = ["| name | what it is |", "| --- | --- |"]
    rows += [f"| `{name}` | {first_line(name)} |" for name in shoal.mechanisms.__all__]
    return "\n".join(rows) + "\n"


def first_line(name: str) -> str:
    """What a stable name says of itself."""
    said = (inspect.getdoc(getattr(shoal.mechanisms, name)) or "").partition("\n")[0]
    return said.replace("**", r"\*\*").replace("|", r"\|")


def main() -> None:
    """Print the table, or write it into the page."""
    if "--write" not in sys.argv:
        print(table(), end="")
        return
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + table() + END + rest.partition(END)[2])


if __name__ == "__main__":
    main()
