"""`shoal check`: whether a worker would start, and what it would guarantee to whom."""

from collections.abc import Iterator
from typing import Annotated

import typer

from shoal.agents.cli.output import AsJson, ConfigPath, result, say
from shoal.agents.inspection.inspect import Inspection

MOST_PEOPLE = 2**20

People = Annotated[
    int | None,
    typer.Option(
        min=1, max=MOST_PEOPLE, metavar="K", help="Also say what any K people lose together, such as a household."
    ),
]
Workers = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT,...", help="Ask running workers, too: are they ready, and what do ticks wait for?"),
]


def check(config: ConfigPath, people: People = None, workers: Workers = None, as_json: AsJson = False) -> None:
    """Would a worker start? What would be charged, and guaranteed to whom? Section by section, with remedies.

    Configuration, guarantee, key, ledger, brokers, rights, topics, policies: what is refused in one is said, and
    the others are looked at all the same. Nothing is registered or charged. Section `records` reads up to 1,000
    records of each source partition, for two seconds a topic at most, and warns if they are keyed by something else
    than the user, are not JSON, or are hidden by a producer's open transaction. Its numbers are for those who may
    see the events. A configuration without [kafka] is checked for `shoal run` alone. With --people it also says
    what any so many people lose together, in each metric and in all: a household of four, say. With --workers it
    asks workers that run, at their [web] port, and names what holds a tick up; a name with several addresses stands
    for all of them.

    Example: shoal check shoal.toml --people 4
    """
    inspected = Inspection(config, people, workers)
    inspected.look()
    for warning in inspected.warnings:
        say(f"shoal: warning: {warning}")
    fields = inspected.fields() | {"warnings": inspected.warnings, "sections": inspected.findings.fields()}
    result(fields, as_json=as_json, text=lambda: "\n".join(_lines(inspected)))
    inspected.refuse()


def _lines(inspected: Inspection) -> Iterator[str]:
    yield from inspected.findings.shown()
    if internal := inspected.internal:
        hold = "internal topics hold exact sums, samples or raw records, protect them like the events"
        yield f"{hold}: {', '.join(internal)}"
