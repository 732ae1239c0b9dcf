"""The label as a page that prints on one sheet: no script, nothing loaded, all text escaped."""

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

from shoal import __version__
from shoal.agents.label.facts import Facts, MetricFacts
from shoal.agents.label.text import sections
from shoal.models.loss_numbers import told


def page(facts: Facts) -> str:
    """The label of these facts as one HTML document; it needs no other file."""
    here = files("shoal.agents.label")
    style = (here / "page.css").read_text()
    return Template((here / "page.html").read_text()).substitute(
        app=escape(facts.app),
        style=style,
        allowed=f"sha256-{b64encode(sha256(style.encode()).digest()).decode()}",
        sections="\n".join(_sections(facts)),
        metrics="\n".join(map(_row, facts.metrics)),
        others=_others(facts),
        version=escape(__version__),
        digest=facts.digest,
    )


def _sections(facts: Facts) -> Iterator[str]:
    for title, sentences in sections(facts):
        paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
        yield f"<section><h2>{escape(title)}</h2>{paragraphs}</section>"


def _row(metric: MetricFacts) -> str:
    name = f"{metric.name} version {metric.version}"
    return (
        f'<tr><th scope="row">{escape(name)}<small>{escape(metric.state)}</small></th>'
        f"<td>{escape(metric.content)}<p>{escape(metric.guarantee)}</p></td>"
        f"<td>{escape(told(metric.charge))}</td></tr>"
    )


def _others(facts: Facts) -> str:
    if not facts.others:
        return ""
    rows = "\n".join(map(_row, facts.others))
    heading = '<tr><th scope="colgroup" colspan="3">Charged to the same budget besides</th></tr>'
    return f"<tbody>{heading}\n{rows}</tbody>"
