"""`shoal run`: a file of events in, private releases out, without Kafka."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from shoal.agents.cli.output import AsJson, ConfigPath, open_output, progress, result
from shoal.agents.continuing import Continuation
from shoal.agents.files import EventFile, size_of
from shoal.agents.ledger import End
from shoal.agents.session import open_session
from shoal.agents.tuning import tune_garbage_collector
from shoal.mechanisms.keyed import derive
from shoal.models.config import Config
from shoal.models.errors import ConfigError
from shoal.models.times import iso
from shoal.stream.plan import plan_topic
from shoal.stream.runner import FileRun


def run(
    config: ConfigPath,
    input: Annotated[str, typer.Option(help="Events: .jsonl, .csv with a header (either .gz), or - for stdin.")],  # noqa: A002
    output: Annotated[str, typer.Option(help="Releases as JSON lines: a file, or - for stdout.")],
    topic: Annotated[
        str | None, typer.Option(help="Whose events they are, where the config has several topics.")
    ] = None,
    dead_letters: Annotated[Path | None, typer.Option(help="Write refused events here, with reasons.")] = None,
    open_: Annotated[
        bool, typer.Option("--open", help="Leave the last tick unreleased: more input may follow.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the metrics over a file of events; the same releases, byte for byte, as workers on Kafka make of them.

    Every release is in the audit log before it is printed. The end of the input closes the last tick and ends the
    metric version: another input needs a new version.

    Example: shoal run examples/shoal.toml --input examples/purchases.jsonl --output -
    """
    tune_garbage_collector()
    with open_session(config) as session, ExitStack() as files:
        file = EventFile(input, session.config, choose_topic(session.config, topic))
        _check_times(session.config, file_topic := choose_topic(session.config, topic))
        plan = plan_topic(
            session.config, file_topic, session.key.secret, source_partitions=1, contributions_partitions=1
        )
        continuation = Continuation(session.ledger, session.config.kafka.app, plan, session.remember)
        session.register(file_run=True, topic=file_topic)
        out = open_output(files, output)
        refused = None if dead_letters is None else open_output(files, str(dead_letters))
        runner = FileRun(plan)
        releases = _run(runner, continuation, file, out, refused, end=not open_)
        if not open_ and not continuation.repeats_only:
            session.ledger.append(session.config.kafka.app, [], ends=list(_ends(runner, file)), run=session.ledger.run)
        out.flush()
    counters = runner.counters
    fields = {"events": file.count, "releases": releases, "counters": dict(sorted(counters.items()))}
    result(fields, as_json=as_json, text=lambda: _summary(fields), to_stderr=output == "-" or not as_json)


def _run(
    runner: FileRun, continuation: Continuation, file: EventFile, out: BinaryIO, refused: BinaryIO | None, *, end: bool
) -> int:
    """Show what is in the log; the number of releases."""
    releases = 0
    with progress(f"reading {file.path}", size_of(file.path)) as advance:
        for chunk in runner.outputs(file.lines(advance), end=end):
            for done in continuation.take(chunk):
                out.writelines(release.value + b"\n" for release in done.releases)
                releases += len(done.made)
                if refused is not None:
                    refused.writelines(letter + b"\n" for letter in done.dead_letters)
    continuation.finish()
    return releases


def _ends(runner: FileRun, file: EventFile) -> Iterator[End]:
    for metric in runner.plan.metrics:
        watermark = runner.bound.watermark(metric.clock)
        at = "" if watermark is None else iso(watermark)
        # Keyed: a plain digest of raw values would let whoever can guess them check the guess.
        digest = derive(metric.key, "input", file.digest).hex()
        yield End(metric.section.name, metric.section.version, at, digest)


def choose_topic(config: Config, topic: str | None) -> str:
    """The topic that was named, or the only one there is."""
    if topic is None:
        if len(config.topics) > 1:
            raise ConfigError(f"the metrics read {len(config.topics)} topics; say whose events these are: --topic NAME")
        return config.topics[0]
    if topic not in config.topics:
        raise ConfigError(f"no metric reads topic {topic!r}; name one of: {', '.join(config.topics)}")
    return topic


def _check_times(config: Config, topic: str) -> None:
    for metric in config.metrics_of(topic):
        if metric.time is None:
            raise ConfigError(
                f'metric "{metric.name}" takes its time from Kafka\'s records; a file has none: add `time = "FIELD"`'
            )


def _summary(fields: dict[str, object]) -> str:
    counters = fields["counters"]
    assert isinstance(counters, dict)  # noqa: S101 - made above
    remarks = "".join(f"; {name} {count}" for name, count in counters.items())
    return f"{fields['events']} events, {fields['releases']} releases{remarks}"
