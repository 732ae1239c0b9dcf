"""`shoal produce`: sends a file of events to its topic, keyed by user, in order."""

import asyncio
from typing import Annotated

import typer

from shoal.agents.audit.session import load_config
from shoal.agents.cli.output import AsJson, ConfigPath, progress, result
from shoal.agents.cli.run import choose_topic
from shoal.agents.input.event_file import EventFile, size_of
from shoal.agents.kafka.configured import needed_settings
from shoal.agents.kafka.produce import produce_file


def produce(
    config: ConfigPath,
    input: Annotated[str, typer.Option(help="Events: .jsonl, .csv with a header (either .gz), or - for stdin.")],  # noqa: A002
    topic: Annotated[str | None, typer.Option(help="Where to, if the config has several topics.")] = None,
    end: Annotated[bool, typer.Option("--end", help="Then close the last tick: nothing more will come.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send a file of events to its topic: keyed by user, in line order, each as it stands.

    Records carry today's timestamp: the time of an event is in its `time` field. With --end, a clock record follows
    in every partition.

    Example: shoal produce examples/shoal.toml --input examples/purchases.jsonl --end
    """
    found = load_config(config)
    settings = needed_settings(found, config)
    name = choose_topic(found, topic)
    file = EventFile(input, found, name)
    with progress(f"sending {input}", size_of(input)) as advance:
        sent = asyncio.run(produce_file(settings, found, name, file.lines(advance), end=end))
    fields = {"topic": name, "events": sent}
    result(fields, as_json=as_json, text=lambda: f"{sent} events to topic {name}{', and the end' if end else ''}")
