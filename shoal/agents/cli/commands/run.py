"""`shoal run`: a file of events in, private releases out, without Kafka.

The whole file is checked first, and refused if it cannot be what was meant. Only then are the metrics registered and
charged, and run.
"""

from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from shoal.agents.audit.app_ledger import End
from shoal.agents.audit.continuation import Continuation
from shoal.agents.audit.session import Session, load_config, open_session
from shoal.agents.cli.output import AsJson, ConfigPath, open_lines, progress, refuse_packed, result, say, writing
from shoal.agents.cli.stopping import ending_in_words
from shoal.agents.input.event_file import EventFile, ignore, size_of
from shoal.agents.input.first_pass import NOTHING_DONE, Limits, judge, remarks, survey_file
from shoal.agents.input.read_ahead import read_ahead
from shoal.agents.input.same_files import config_files, log_files, refuse_same
from shoal.agents.input.sorting import SortedFile, sorted_file
from shoal.agents.input.spool import spooled
from shoal.agents.lane import lane_of_environment
from shoal.agents.process_settings import tune_garbage_collector
from shoal.mechanisms.noise.keyed import derive
from shoal.models.config.file import Config
from shoal.models.errors import ConfigError
from shoal.models.times import iso
from shoal.stream.file_run import FileRun
from shoal.stream.survey import Survey
from shoal.stream.topic import TopicPlan, plan_topic

AGAIN = ", and run the same command again: it makes again what is in the audit log, and goes on"
UNSEEN = (  # the same whatever the input is
    "shoal: relation add-remove: whether any record counts is not told, and a wrong field name is charged like a right "
    "one; whoever may see the events can look before: `counters = true` under [web], and --dry-run"
)


def run(
    config: ConfigPath,
    input: Annotated[  # noqa: A002
        str,
        typer.Option(
            help="Events: .jsonl, .json, .csv, .tsv with a header, or GTFS-realtime .pb (any .gz), or - for stdin."
        ),
    ],
    output: Annotated[str | None, typer.Option(help="Releases as JSON lines: a file, or - for stdout.")] = None,
    topic: Annotated[
        str | None, typer.Option(help="The topic that the events belong to, if the configuration has several.")
    ] = None,
    dead_letters: Annotated[Path | None, typer.Option(help="Write refused events here, with reasons.")] = None,
    open_: Annotated[
        bool, typer.Option("--open", help="Leave the last tick unreleased: more input may follow.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Look through the input and say how much of it counts; charge nothing.")
    ] = False,
    sort: Annotated[
        bool, typer.Option("--sort", help="Run the events in order of time; they are sorted on disk.")
    ] = False,
    max_refused: Annotated[
        float,
        typer.Option(
            min=0.0,
            max=1.0,
            metavar="SHARE",
            help="Refuse an input of which every metric refuses more than this share.",
        ),
    ] = 1.0,
    max_late: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, metavar="SHARE", help="Refuse an input of which more than this share is late."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the metrics over a file of events; the same releases, byte for byte, as workers on Kafka make of them.

    The input is read twice: first to see that the metrics can use it and that it is in order of time; what is refused
    then has registered and charged nothing. Every release is in the audit log before it is printed. The end of the
    input closes the last tick and ends the metric version: another input needs a new version.

    Example: shoal run examples/shoal.toml --input examples/purchases.jsonl --output -
    """
    if output is None and not dry_run:
        raise typer.BadParameter("name a file for the releases, or - for stdout", param_hint="--output")
    refuse_packed(output=output, dead_letters=dead_letters)
    tune_garbage_collector()
    lane = lane_of_environment()
    if lane.state == "refused":
        say(f"shoal: warning: {lane.why}; the twin runs")
    loaded = load_config(config)
    refuse_same(
        {"--output": output, "--dead-letters": dead_letters, **log_files(loaded.audit.url)},
        {"the input": input, **config_files(config, loaded)},
    )
    with open_session(config, loaded) as session, ExitStack() as files, ending_in_words():
        name = choose_topic(session.config, topic)
        _check_times(session.config, name)
        asked = {"--dry-run": dry_run, "--max-refused": max_refused < 1, "--max-late": max_late is not None}
        _check_presence(session.config, name, {option for option, is_given in asked.items() if is_given}, sort=sort)
        plan = plan_topic(session.config, name, session.key.secret, source_partitions=1, contributions_partitions=1)
        content = files.enter_context(spooled(input))
        is_lines = session.config.protects_presence
        file = EventFile(input, session.config, name, content=content, is_lines=is_lines)
        session.check(file_run=True, topic=name)  # what the ledger refuses needs no reading
        survey = Survey(plan)
        if session.config.is_discreet:
            file.check_opens()
            say(UNSEEN)
        else:
            file, survey = _look_through(files, session.config, file, plan, lane.module, sort=sort)
        is_nothing_yet = open_ and not survey.records and not session.config.is_discreet
        if is_nothing_yet:
            say(f"shoal: {file.path}: there is no event in it yet; {NOTHING_DONE}")
        elif not session.config.is_discreet:
            judge(survey, file, Limits(max_refused, max_late))
            for remark in remarks(survey, file):
                say(f"shoal: {remark}")
        if output is None or dry_run:
            fields = _would_do(session, name, survey)
        elif is_nothing_yet:
            fields = _nothing(output, dead_letters)
        else:
            fields = _publish(session, plan, file, output, dead_letters, lane.module, end=not open_)
            if session.config.is_discreet:
                fields = {"releases": fields["releases"]}
    text = _dry_summary if dry_run else _summary
    result(fields, as_json=as_json, text=lambda: text(fields), to_stderr=not as_json or (output == "-" and not dry_run))


def _look_through(
    files: ExitStack, config: Config, file: EventFile, plan: TopicPlan, kernel: Any, *, sort: bool
) -> tuple[EventFile, Survey]:
    """The input, in order of time if that was asked for, and what can be used of it."""
    with progress(f"looking through {file.path}", size_of(file.source)) as advance:
        if not sort:
            return file, survey_file(file, plan, advance, kernel)
        ordered: SortedFile = files.enter_context(sorted_file(file, config, plan.topic))
        survey = Survey(plan)
        ordered.fill(survey.look, advance)
    survey.forget_order()  # it was the file that was out of order
    return ordered, survey


def _publish(
    session: Session,
    plan: TopicPlan,
    file: EventFile,
    output: str,
    dead_letters: Path | None,
    kernel: Any,
    *,
    end: bool,
) -> dict[str, Any]:
    """Register, run and write; the outputs appear when all is done."""
    continuation = Continuation(session.app_ledger, plan, session.remember)
    names = (output, None if dead_letters is None else str(dead_letters))
    with writing(*names, then=AGAIN), ExitStack() as outputs:
        out = open_lines(outputs, output)
        refused = None if dead_letters is None else open_lines(outputs, str(dead_letters), private=True)
        session.register(file_run=True, topic=plan.topic)
        runner = FileRun(plan, kernel)
        shown = file.path if not session.config.is_discreet else None
        releases = _run(runner, continuation, file, out, refused, shown, end=end)
        if end:
            session.app_ledger.append([], ends=list(_ends(session.config, runner, file)), run=session.ledger.run)
        out.flush()
    return {"events": file.count, "releases": releases, "counters": dict(sorted(runner.counters.items()))}


def _nothing(output: str, dead_letters: Path | None) -> dict[str, Any]:
    """The result for an input that is still empty, and left open: nothing is registered for it."""
    with ExitStack() as outputs:
        for path in (output, dead_letters):
            if path is not None:
                open_lines(outputs, str(path), private=path is dead_letters)
    return {"events": 0, "releases": 0, "counters": {}}


def _run(
    runner: FileRun,
    continuation: Continuation,
    file: EventFile,
    out: BinaryIO,
    refused: BinaryIO | None,
    shown: str | None,
    *,
    end: bool,
) -> int:
    """Write what is in the log, and return the number of releases; `shown` names the input, if progress may be seen."""
    releases = 0
    reading = nullcontext(ignore) if shown is None else progress(f"reading {shown}", size_of(file.source))
    with reading as advance:
        if runner.blocks is not None and file.is_in_lines():
            outputs = runner.outputs_of(read_ahead(file.blocks(runner.blocks, advance)), end=end)
        else:
            outputs = runner.outputs(file.lines(advance), end=end)
        for done in continuation.logged(outputs):
            out.writelines(release.value + b"\n" for release in done.releases)
            releases += len(done.made)
            if refused is not None:
                refused.writelines(letter + b"\n" for letter in done.dead_letters)
    return releases


def _ends(config: Config, runner: FileRun, file: EventFile) -> Iterator[End]:
    for metric in runner.plan.metrics:
        parts = metric.parts
        watermark = parts.end if parts.protects_presence else runner.bound.watermark(metric.clock)
        at = "" if watermark is None else iso(watermark)
        # Keyed: a plain digest of raw values would let whoever can guess them check the guess.
        digest = derive(metric.key, "input", file.digest).hex()
        yield End(config.id_of(parts), at, digest)


def choose_topic(config: Config, topic: str | None) -> str:
    """The named topic, or the only one there is."""
    if topic is None:
        if len(config.topics) > 1:
            raise ConfigError(f"the metrics read {len(config.topics)} topics; say whose events these are: --topic NAME")
        return config.topics[0]
    if topic not in config.topics:
        raise ConfigError(f"no metric reads topic {topic!r}; name one of: {', '.join(config.topics)}")
    return topic


def _check_presence(config: Config, topic: str, asked: set[str], *, sort: bool) -> None:
    """Refuse what a run of metrics that protect presence lacks, or may not tell."""
    if not config.protects_presence:
        return
    for metric in config.metrics_of(topic):
        if metric.end is None:
            raise ConfigError(
                f'metric "{metric.name}" has no end, and a file run closes all steps up to it, whatever the events: '
                "add `end`"
            )
    if sort:
        raise ConfigError("--sort is for relation values; with add-remove all steps are open until the input ends")
    if asked and config.is_discreet:
        raise ConfigError(
            f"{' and '.join(sorted(asked))} would tell how many events there are; if you may see the events, write "
            "`counters = true` under [web]"
        )


def _check_times(config: Config, topic: str) -> None:
    for metric in config.metrics_of(topic):
        if metric.source.time is None:
            raise ConfigError(
                f'metric "{metric.name}" takes its time from Kafka\'s records; a file has none: add `time = "FIELD"`'
            )


def _would_do(session: Session, topic: str, survey: Survey) -> dict[str, Any]:
    """The result of a dry run: counts of pattern, and what the ledger would be charged."""
    charged = session.check(file_run=True, topic=topic).charged
    return {
        "events": survey.records,
        "usable": survey.by_metric,
        "refused": survey.refused,
        "late": survey.late,
        "would_charge": {new.id.label: str(new.charge_epsilon) for new in charged},
    }


def _dry_summary(fields: dict[str, Any]) -> str:
    usable = ", ".join(f"{count} for {name}" for name, count in fields["usable"].items())
    charges = ", ".join(f"{name} epsilon {epsilon}" for name, epsilon in fields["would_charge"].items())
    return (
        f"{fields['events']} events; usable: {usable}; refused by all metrics: {fields['refused']}; late: "
        f"{fields['late']}; nothing was charged; a run would charge: {charges or 'nothing more'}"
    )


def _summary(fields: dict[str, Any]) -> str:
    if "events" not in fields:
        return f"{fields['releases']} releases"
    remarks = "".join(f"; {name} {count}" for name, count in fields["counters"].items())
    return f"{fields['events']} events, {fields['releases']} releases{remarks}"
