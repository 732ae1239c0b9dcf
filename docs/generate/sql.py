"""Prints docs/reference/sql.md: the prose of `sql.md.in`, with the columns of the views as the database documents them.

`make reference` writes the page, and a test compares it with what this prints. `<!-- views -->` becomes a row for each
view, `<!-- columns of NAME -->` the table of a view's columns.
"""

import re
from pathlib import Path

from shoal.models.views import VIEWS

TEMPLATE = Path(__file__).with_name("sql.md.in")


def page() -> str:
    """The whole page."""
    views = "".join(f"| [`{name}`](#{name}) | {row} |\n" for name, (row, _) in VIEWS.items())
    text = TEMPLATE.read_text("utf-8").replace("<!-- views -->\n", views)
    return re.sub(r"<!-- columns of (\w+) -->\n", lambda mark: _columns(mark[1]), text)


def _columns(view: str) -> str:
    rows = "".join(f"| `{name}` | {meaning} |\n" for name, meaning in VIEWS[view][1].items())
    return f"| column | what it is |\n| --- | --- |\n{rows}"


if __name__ == "__main__":
    print(page(), end="")
