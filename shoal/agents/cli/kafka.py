"""Commands about Kafka itself: `shoal broker` runs one, `shoal topics` makes topics, `shoal produce` sends events."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from shoal.agents.audit.session import load_config
from shoal.agents.broker.process import START_LIMIT, run_broker
from shoal.agents.cli.output import AsJson, ConfigPath, progress, result, say
from shoal.agents.cli.run import choose_topic
from shoal.agents.input.event_file import EventFile, size_of
from shoal.agents.kafka.beats import last_beat
from shoal.agents.kafka.produce import produce_file
from shoal.agents.kafka.settings import needed_settings
from shoal.agents.kafka.topics import create_sources, verify_topics
from shoal.models.extras import require


def broker(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where clients connect, on this machine only.")] = 9092,
    data: Annotated[Path, typer.Option(help="Where Kafka keeps its data; made when missing.")] = Path("shoal-kafka"),
    start_limit: Annotated[float, typer.Option(min=1, help="Seconds that its start may take.")] = START_LIMIT,
) -> None:
    """Run a real Kafka on this machine, for development: one node, no password, keeps everything.

    It prints one line when it is ready and runs until Ctrl-C. Start it again on the same folder to go on.

    Example: shoal broker --port 9092 --data shoal-kafka
    """
    require("shoal broker", "demo")
    run_broker(port, data, start_limit)


def topics(config: ConfigPath, as_json: AsJson = False) -> None:
    """Create the topics that are missing, and verify the partition counts and policies of the others.

    Source topics are made with `[kafka] partitions` partitions and without retention; workers refuse to start
    without them.

    Example: shoal topics shoal.toml
    """
    loaded = load_config(config)
    settings = needed_settings(loaded, config)
    made = asyncio.run(create_sources(settings, loaded.topics))
    verified = asyncio.run(verify_topics(settings, loaded.topics))
    warnings = [*verified.warnings, *verified.durability]
    for warning in warnings:
        say(f"shoal: warning: {warning}")
    created = sorted({*made, *verified.created})
    fields = {"topics": verified.partitions, "created": created, "warnings": warnings}
    lines = [
        f"{name}: {count} partitions{', made' if name in created else ''}"
        for name, count in verified.partitions.items()
    ]
    result(fields, as_json=as_json, text=lambda: "\n".join(lines))


def produce(
    config: ConfigPath,
    input: Annotated[str, typer.Option(help="Events: as `shoal run` reads them; of stdin (-) JSON lines.")],  # noqa: A002
    topic: Annotated[str | None, typer.Option(help="Where to, if the config has several topics.")] = None,
    end: Annotated[bool, typer.Option("--end", help="Then close the last tick: nothing more will come.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send a file of events to its topic: keyed by user, in line order, each as it stands.

    Records carry today's timestamp: the time of an event is in its `time` field. With --end, a clock record follows
    in every partition; for relation add-remove a beat, which closes the steps up to the metrics' `end`.

    Example: shoal produce examples/shoal.toml --input examples/purchases.jsonl --end
    """
    loaded = load_config(config)
    settings = needed_settings(loaded, config)
    name = choose_topic(loaded, topic)
    if end and loaded.protects_presence:
        last_beat(loaded, name)
    file = EventFile(input, loaded, name)
    with progress(f"sending {input}", size_of(input)) as advance:
        sent = asyncio.run(produce_file(settings, loaded, name, file.lines(advance), end=end))
    fields = {"topic": name, "events": sent}
    result(fields, as_json=as_json, text=lambda: f"{sent} events to topic {name}{', and the end' if end else ''}")
