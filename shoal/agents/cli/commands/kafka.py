"""Commands about Kafka itself: brokers, topics, events that are sent, and those that were refused."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.agents import misplaced
from shoal.agents.audit.session import load_config
from shoal.agents.broker.process import START_LIMIT, run_broker
from shoal.agents.cli.commands.run import choose_topic
from shoal.agents.cli.output import AsJson, ConfigPath, open_lines, progress, refuse_packed, result, say, writing
from shoal.agents.dead_letters import Letters, count_letters, refused_records
from shoal.agents.input.event_file import EventFile, size_of
from shoal.agents.input.same_files import deployment_files, refuse_same
from shoal.agents.kafka.beats import last_beat
from shoal.agents.kafka.produce import produce_file
from shoal.agents.kafka.settings import needed_settings
from shoal.agents.kafka.topics import create_sources, verify_topics
from shoal.models.config.file import Config, load
from shoal.models.extras import require
from shoal.models.printable import printable
from shoal.models.records import MAX_DEAD_LETTER_BYTES
from shoal.models.times import iso

TOO_FAR_AHEAD = "too-far-ahead"  # reason


def broker(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where clients connect, on this machine only.")] = 9092,
    data: Annotated[Path, typer.Option(help="Where Kafka keeps its data; made if it is missing.")] = Path(
        "shoal-kafka"
    ),
    start_limit: Annotated[float, typer.Option(min=1, help="Seconds that the start may take.")] = START_LIMIT,
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
    input: Annotated[str, typer.Option(help="Events, as `shoal run` reads them; from stdin (-) JSON lines.")],  # noqa: A002
    topic: Annotated[str | None, typer.Option(help="The topic to send to, if the configuration has several.")] = None,
    end: Annotated[bool, typer.Option("--end", help="Close the last tick afterwards: nothing more will come.")] = False,
    as_json: AsJson = False,
) -> None:
    """Send a file of events to its topic: keyed by user, in line order, each as it stands.

    Records carry today's timestamp: the time of an event is in its `time` field. With --end, clock records follow in
    every partition, for the end of each metric's open tick; for relation add-remove a beat, which closes the steps up
    to the metrics' `end`. A tick whose end is further ahead than `max_ahead` stays open.

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
    for tick in sent.open:
        say(
            f'shoal: note: metric "{tick.metric}": the tick that ends at {iso(tick.end)} stays open, since no clock '
            f"may be that far ahead before {iso(tick.closes_from)}; the first event after its end closes it"
        )
    still_open = [
        {"metric": tick.metric, "end": iso(tick.end), "closes_from": iso(tick.closes_from)} for tick in sent.open
    ]
    fields = {"topic": name, "events": sent.events, "open": still_open}
    text = f"{sent.events} events to topic {name}{', and the end' if end and not still_open else ''}"
    result(fields, as_json=as_json, text=lambda: text)


def dead_letters(
    config: ConfigPath,
    reason: Annotated[
        list[str] | None,
        typer.Option("--reason", metavar="R", help="Write the records refused for this reason; may be repeated."),
    ] = None,
    out: Annotated[
        str, typer.Option("--out", metavar="FILE", help="With --reason: where to write them; - for stdout.")
    ] = "-",
    topic: Annotated[
        str | None, typer.Option(help="The topic of the records, if the configuration has several.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count refused events by reason; with --reason write them in the form that `shoal produce` takes.

    They are raw events: for those who may see the events, as are the counts with relation add-remove. Repair the
    lines and send them with `shoal produce`. Nothing is deleted. It needs no key.

    Example: shoal dead-letters shoal.toml --reason bad-time --out refused.jsonl
    """
    refuse_packed(out=out)
    loaded = load(config)
    refuse_same({"--out": out}, deployment_files(config, loaded))
    settings = needed_settings(loaded, config)
    if not reason:
        found = asyncio.run(count_letters(settings))
        _say_unreadable(found.unreadable)
        rows = sorted(found.counts.items())
        counts = [{"reason": r, "metric": m, "topic": t, "letters": number} for (r, m, t), number in rows]
        lines = [f"{one['reason']:<16}  {one['letters']:>9,}  {one['metric']} ({one['topic']})" for one in counts]
        lines += _explained(found, loaded)
        text = "\n".join(map(printable, lines)) or "no dead letters"
        fields = {"dead_letters": counts, "unreadable": found.unreadable} | _explained_fields(found)
        result(fields, as_json=as_json, text=lambda: text)
        return
    name = choose_topic(loaded, topic)
    found, records = asyncio.run(refused_records(settings, loaded, name, frozenset(reason)))
    with writing(out), ExitStack() as files:
        file = open_lines(files, out, private=True)
        file.writelines(records)
        file.flush()
    _say_unreadable(found.unreadable)
    _say_left_out(found, name, reason)
    fields = {
        "topic": name, "out": out, "records": found.records, "cut": found.cut, "empty": found.empty,
        "replaced": found.replaced, "counted_elsewhere": found.counted,
    }  # fmt: skip
    if out != "-":
        result(fields, as_json=as_json, text=lambda: f"{out}: {found.records:,} records of topic {name}")


def _explained(found: Letters, config: Config) -> Iterator[str]:
    """Causes that several dead letters share, each with its remedy, as lines for a terminal."""
    for topic, stretches in sorted(found.misplaced().items()):
        shares = {place: stretch.share for place, stretch in stretches.items()}
        user = next((metric.source.user for metric in config.metrics_of(topic)), "the user")
        yield f"{misplaced.said(shares, user)}; {misplaced.remedy(user, config.kafka.partitioner)}"
    for (topic, framing), count in found.framed.most_common():
        yield f"{topic}: {count:,} letters of not-json are {framing.name}; {framing.remedy}"
    for topic in sorted({topic for reason, _, topic in found.counts if reason == TOO_FAR_AHEAD}):
        yield (
            f"{topic}: records that are {TOO_FAR_AHEAD} have a time ahead of their own timestamp by more than "
            "max_ahead; set the producer's clock right or, if times lie ahead by nature, as in bookings, leave `time` "
            "out or raise max_ahead: one fast clock then closes ticks that much early"
        )


def _explained_fields(found: Letters) -> dict[str, Any]:
    """Causes that several dead letters share, as JSON fields; empty without any."""
    wrong = [
        {
            "topic": topic,
            "partition": number,
            "misplaced": stretch.misplaced,
            "first": stretch.first,
            "last": stretch.last,
        }
        for places in found.misplaced().values()
        for (topic, number), stretch in sorted(places.items())
    ]
    framed = [
        {"topic": topic, "framing": framing.name, "letters": count}
        for (topic, framing), count in found.framed.most_common()
    ]
    return ({"misplaced": wrong} if wrong else {}) | ({"framings": framed} if framed else {})


def _say_unreadable(number: int) -> None:
    if number:
        say(f"shoal: note: {number:,} records of the topic are no dead letters, left out")


def _say_left_out(found: Letters, topic: str, reasons: list[str]) -> None:
    """What is not among the records that were written, or not as it was sent."""
    known = sorted({reason for reason, _, of in found.counts if of == topic})
    if not found.records and not set(reasons) & set(known):
        say(f"shoal: note: no record of topic {topic} has this reason; there are: {', '.join(known) or 'none'}")
    for number, what in (
        (found.cut, f"are larger than {MAX_DEAD_LETTER_BYTES:,} bytes, of which only the beginning is kept; left out"),
        (found.empty, "are empty, or beats; left out"),
        (found.replaced, "had bytes that are no UTF-8, for which \ufffd stands now"),
        (found.counted, "were refused by some metrics alone: sent again, they count twice for the others"),
    ):
        if number:
            say(f"shoal: note: {number:,} records {what}")
