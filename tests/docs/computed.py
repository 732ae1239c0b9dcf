"""Examples with `>>>` on pages: what is written below an expression is what Python prints for it."""

import doctest
import re
from pathlib import Path

from tests.docs.blocks import ROOT

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PICTURED = ROOT / "docs/explanation/algorithms"  # pages that show numbers of their pictures


def wrong(page: Path) -> str:
    """Report of the examples of a page that print something else; empty if none does."""
    written = page.read_text("utf-8")
    # A fence that ends an example would be read as its output.
    text = FENCE.sub(lambda fence: f"{fence[2]}\n", written)
    examples = doctest.DocTestParser().get_doctest(text, {}, str(page.relative_to(ROOT)), str(page), 0)
    assert len(examples.examples) == written.count(">>> "), "an example is not parsed; do not indent fences"
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples, out=said.append)
    return "".join(said)
