"""The label as text, for a terminal or a mail."""

from collections.abc import Iterator
from textwrap import fill

from shoal.agents.label.facts import Facts, MetricFacts
from shoal.models.loss_numbers import told

WIDTH = 100


def text(facts: Facts) -> str:
    """The label, in lines of at most 100 characters."""
    return "\n".join(_lines(facts))


def _lines(facts: Facts) -> Iterator[str]:
    yield f"PRIVACY FACTS of {facts.app}"
    yield ""
    for title, sentences in sections(facts):
        yield title
        yield from (_paragraph(sentence) for sentence in sentences)
        yield ""
    yield "Each metric"
    for metric in facts.metrics:
        yield from _metric(metric)
    if facts.others:
        yield ""
        yield "Charged besides"
        for metric in facts.others:
            yield from _metric(metric)
    yield ""
    yield f"Digest of what this describes: {facts.digest}"
    yield "To compare it later: shoal label CONFIG --verify FILE, with the file that --json writes."


def sections(facts: Facts) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What is said of all metrics: titles with their sentences."""
    if facts.statement.protected:
        yield "Protected", facts.statement.protected
    yield "Not protected", facts.statement.public
    if facts.statement.loss:
        yield "What that is worth", facts.statement.loss
    yield "Budget", (budget(facts),)


def budget(facts: Facts) -> str:
    """The sentence on what is spent and left."""
    log = "no audit log yet" if facts.log is None else f"audit log {facts.log}"
    return f"{facts.budget_in_words()}; charged {told(facts.charged)}; left {told(facts.left)} ({log})."


def _metric(metric: MetricFacts) -> Iterator[str]:
    yield _paragraph(f"{metric.name} version {metric.version} ({metric.state}): {metric.content}", hanging="  ")
    yield _paragraph(metric.guarantee, "    ")
    yield f"    charged: {told(metric.charge)}"


def _paragraph(sentence: str, indent: str = "  ", hanging: str = "") -> str:
    whole = sentence.replace(" = ", "\0=\0")  # an amount stays in one line
    return fill(
        whole, WIDTH, initial_indent=indent, subsequent_indent=indent + hanging, break_on_hyphens=False,
        break_long_words=False,
    ).replace("\0", " ")  # fmt: skip
