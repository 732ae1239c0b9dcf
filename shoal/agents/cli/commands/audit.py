"""Commands about the audit log: `shoal migrate` makes its schema, `shoal audit` proves what was released.

`audit verify` asks SQL and topic alone; `audit replay` also needs the contributions, or the events, and the key.
`audit user` reads changelogs, and needs neither. `audit backup` and `audit restore` copy the log, and need no key.
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shoal.agents.audit import key_file
from shoal.agents.audit.copies.copy import faults, open_copy, refuse_faulty, write_copy
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.session import load_config, open_session
from shoal.agents.audit.verify import Finding, compare_topic
from shoal.agents.audit.verify import verify as verify_log
from shoal.agents.cli.output import AsJson, ConfigPath, confirm, progress, result, say
from shoal.agents.input.same_files import deployment_files, log_files, refuse_same
from shoal.agents.kafka.settings import KafkaSettings, needed_settings, settings_of
from shoal.agents.lane import lane_named
from shoal.agents.process_settings import quiet_libraries, tune_garbage_collector
from shoal.mechanisms import words
from shoal.mechanisms.accounts import Holding
from shoal.mechanisms.words import many
from shoal.models.config.file import Config, load
from shoal.models.errors import AuditError, KafkaError, LedgerError
from shoal.models.events import Refusal, name_bytes
from shoal.models.times import iso

if TYPE_CHECKING:  # what speaks to Kafka: who asks SQL alone should not wait for it
    from shoal.agents.audit.person import Kept
    from shoal.agents.audit.replay.run import ReplayReport

STEPS = 1000  # of the progress bar

From = Annotated[
    Literal["contributions", "events"],
    typer.Option("--from", help="events: recompute the contributions too, which takes longer."),
]
Lane = Annotated[
    Literal["kernel", "twin"],
    typer.Option(
        "--lane", help="What makes contributions from events: the kernel is faster, the twin is the specification."
    ),
]


def migrate(config: ConfigPath, as_json: AsJson = False) -> None:
    """Bring the SQL schema of the audit log to the state this version needs.

    Safe to repeat, and with several at once. PostgreSQL needs it before any other command. A SQLite file is made and
    migrated by worker, run, budget and audit too; after an upgrade, check and commands that only read ask for it.

    Example: shoal migrate shoal.toml
    """
    with Ledger.open(load(config).audit.url, migrate=True) as ledger:
        fields = {"log": ledger.log_id, "database": ledger.database.url.get_backend_name()}
        result(fields, as_json=as_json, text=lambda: f"audit log {ledger.log_id}: schema up to date")


def verify(
    config: ConfigPath,
    copy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Check a copy of shoal audit backup in place of the log.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the audit log: hash chains, equivocation, ledger, and its releases against the topic. It needs no key.

    A line for each finding, and exit 1. A log that ends before the topic is behind, which is no finding. Without
    Kafka only SQL is checked.

    Example: shoal audit verify shoal.toml
    """
    quiet_libraries()
    loaded = load_config(config)
    with open_copy(copy) if copy else Ledger.open(loaded.audit.url) as ledger:
        findings = faults(ledger, copy) if copy else verify_log(ledger)
        findings += _topic_findings(loaded, ledger)
        releases = ledger.count_releases()
    failures, notes = [f for f in findings if f.failure], [f for f in findings if not f.failure]
    text = _in_order(copy, releases) if copy else f"the audit log is in order: {releases} releases"
    _conclude(failures, notes, {"releases": releases}, text, as_json)


def _in_order(copy: Path, releases: int) -> str:
    return f"{copy}: {many(releases, 'release')}, in order"


def backup(
    config: ConfigPath,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file; one that exists is not overwritten.")],
    as_json: AsJson = False,
) -> None:
    """Copy the audit log into a file while workers run, and check the copy. It needs neither key nor Kafka.

    A copy of SQLite or of PostgreSQL is a SQLite file, mode 0600. It appears when it is whole and in order. Check it
    later with shoal audit verify CONFIG --copy FILE.

    Example: shoal audit backup shoal.toml backup/shoal.db
    """
    loaded = load_config(config)
    refuse_same({"FILE": file}, deployment_files(config, loaded))
    with Ledger.look(loaded.audit.url) as ledger:
        if not ledger.is_there:
            raise LedgerError("[audit] url: there is no audit log yet, so there is nothing to copy")
        releases = write_copy(ledger, file)
        fields = {"file": str(file), "log": ledger.log_id, "releases": releases}
    result(fields, as_json=as_json, text=lambda: _in_order(file, releases))


def restore(
    config: ConfigPath,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A copy that shoal audit backup made.")],
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Do not ask before losing rows that the copy lacks. Required without a terminal."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Replace the audit log by a copy that is in order, all or nothing. Stop all workers and timers before.

    If the present log has rows that the copy lacks, the command lists them and asks. The group's offsets of
    APP.releases and APP.activations are set to the beginning: workers read these again, and skip what the log has.
    Kafka does that only while the group has no members. It is safe to repeat.

    Example: shoal audit restore shoal.toml backup/shoal.db
    """
    from shoal.agents.audit.copies.restore import apps_of_workers, lacking
    from shoal.agents.audit.copies.restore import restore as restore_log

    quiet_libraries()
    loaded = load_config(config)
    url = loaded.audit.url
    refuse_same(log_files(url), {"FILE": file})
    with open_copy(file) as copy:
        releases = refuse_faulty(copy, file, f"use another copy, or see all: shoal audit verify {config} --copy {file}")
        key_file.refuse_other_log(loaded.privacy.key_file, copy.log_id, file)
        if lost := lacking(copy, url):
            say(f"shoal: compared with the present log, {file} lacks {'; '.join(lost)}")
            say("shoal: workers read missing releases and activations again from the topics; all else of it is lost")
            confirm("Replace the audit log?", yes=yes)
        apps = apps_of_workers(copy, url)
        topics, away = _read_again(loaded)
        aside = restore_log(copy, url)
    if aside is not None:
        say(f"shoal: note: the log that was there is damaged, and kept as {aside}")
    if others := ", ".join(sorted(apps - {loaded.kafka.app})):
        say(f"shoal: note: run this with the configuration of {others}, too, before its workers start")
    fields = {"file": str(file), "log": copy.log_id, "releases": releases, "read_again": topics}
    lines = [f"audit log {copy.log_id}: {many(releases, 'release')}, restored from {file}"]
    lines += [f"workers read {topic} again from its beginning" for topic in topics]
    result(fields, as_json=as_json, text=lambda: "\n".join(lines))
    if loaded.has_kafka and not topics and loaded.kafka.app in apps:
        why = away or "topics of releases and activations are not there, or may not be seen by this user"
        raise KafkaError(f"{why}; the group's offsets are not set: mend that, then run this command again")


def _read_again(config: Config) -> tuple[list[str], KafkaError | None]:
    """The topics that workers read again, and why none if brokers are away."""
    if not config.has_kafka:
        return [], None
    from shoal.agents.audit.copies.group import is_away, read_again

    settings = settings_of(config)
    try:
        waiting = f"shoal: waiting until group {settings.app} has no members"
        return asyncio.run(read_again(settings, lambda: say(waiting))), None
    except KafkaError as error:
        if not is_away(error):
            raise
        return [], error


def _topic_findings(config: Config, ledger: Ledger) -> list[Finding]:
    if not config.has_kafka:
        return [_not_compared("the configuration has no [kafka] section")]
    from shoal.agents.kafka.topics import kafka_errors

    settings = settings_of(config)
    try:
        with kafka_errors(settings):
            return compare_topic(ledger.of(settings.app), _released(settings))
    except KafkaError as error:
        return [_not_compared(str(error))]
    except AuditError as error:
        return [Finding("topic", settings.releases, str(error))]


def _not_compared(why: str) -> Finding:
    return Finding("kafka", "topic", f"not compared, only SQL was checked: {why}", failure=False)


def _released(settings: KafkaSettings) -> Iterator[bytes]:
    """The values in the releases topic, for a caller without an event loop."""
    from shoal.agents.audit.replay.scan import committed

    with asyncio.Runner() as runner:
        batches = committed(settings, settings.releases)
        while (records := runner.run(_next(batches))) is not None:
            yield from [record.value or b"" for record in records]


async def _next(batches: Any) -> Any:
    return await anext(batches, None)


def replay(config: ConfigPath, from_: From = "contributions", lane: Lane = "twin", as_json: AsJson = False) -> None:
    """Make every release again from the contributions and the key; compare bit for bit with topic and audit log.

    A line for each finding, and exit 1. With --from events the contributions are made again from the events, by the
    Python twin whatever is installed, or by the kernel with --lane kernel. Nothing is written, nothing is charged, and
    workers may run meanwhile.

    Example: shoal audit replay shoal.toml --from events
    """
    from shoal.agents.audit.replay.run import replay as replay_all

    if lane == "kernel" and from_ != "events":
        raise typer.BadParameter("the kernel takes in events: add --from events", param_hint="--lane")
    kernel = lane_named(lane).module
    quiet_libraries()
    tune_garbage_collector()
    with open_session(config) as session, progress(f"replaying {session.config.kafka.app}", STEPS) as advance:

        def show(done: int, total: int) -> None:
            advance(done * STEPS // max(1, total))

        settings = settings_of(session.config)
        from_events = from_ == "events"
        report = asyncio.run(replay_all(session, settings, from_events=from_events, kernel=kernel, on_progress=show))
    counts = {"releases": report.releases, "confirmed": report.confirmed}
    _conclude(report.findings, report.notes, counts, _confirmed(report, from_), as_json)


def _confirmed(report: "ReplayReport", from_: str) -> str:
    return (
        f"{report.confirmed} of {report.releases} releases and {report.activations} activations are confirmed "
        f"bit for bit from {'events, contributions' if from_ == 'events' else from_} and key"
    )


def user(
    config: ConfigPath,
    who: Annotated[str, typer.Argument(metavar="USER", help="The user id, as events have it.")],
    as_json: AsJson = False,
) -> None:
    """Tell what workers keep of one user: samples that count, in which groups or cells, and what waits to be sent.

    It reads the changelogs, of a running or a stopped app, and needs no key; whoever may see the events may see this.
    Blocks that wait for release stand under pseudonyms and are not shown. With --json, a line for each metric.

    Example: shoal audit user shoal.toml ann
    """
    from shoal.agents.audit.person import kept_of
    from shoal.agents.kafka.topics import kafka_errors

    quiet_libraries()
    loaded = load_config(config)
    settings = needed_settings(loaded, config)
    name = name_bytes(who, "user")
    if isinstance(name, Refusal):
        raise typer.BadParameter("a user id has 1 to 256 bytes", param_hint="USER")
    with kafka_errors(settings):
        kept = asyncio.run(kept_of(loaded, settings, name))
    for metric in kept:
        result(_kept_fields(metric), as_json=as_json, text=partial(_kept_text, metric))


def _kept_fields(kept: "Kept") -> dict[str, Any]:
    metric = kept.metric.parts
    return {
        "metric": metric.name,
        "version": metric.version,
        "topic": kept.topic,
        "partition": kept.partition,
        "unit": metric.unit.name,
        **({"relation": metric.hides.relation} if metric.protects_presence else {}),
        "kept": [
            {
                "start": None if each.start is None else iso(each.start),
                "place": each.place,
                "samples": each.samples,
                "waiting": each.waiting,
                "open_sum": kept.open_sum(each),
            }
            for each in kept.holdings
        ],
    }


def _kept_text(kept: "Kept") -> str:
    metric = kept.metric.parts
    lines = [f"{metric.name} version {metric.version}, {kept.topic}[{kept.partition}]:"]
    lines += [f"  {_held(each)}" for each in kept.holdings] or ["  nothing"]
    return "\n".join(lines)


def _held(each: Holding) -> str:
    when = "" if each.start is None else f"from {iso(each.start)}: "
    samples = "some of them" if each.samples is None else words.samples(each.samples)
    place = "" if each.place is None else f" in {each.place!r}"
    waiting = f", {each.waiting} of them wait to be sent" if each.waiting else ""
    return f"{when}{samples}{place}{waiting}{', with the sum of an open block' if each.open_sum else ''}"


def _conclude(
    findings: Sequence[Finding], notes: Sequence[Finding], counts: dict[str, int], summary: str, as_json: bool
) -> None:
    """Print the findings, and exit with 1 if there is one."""
    fields = {
        "ok": not findings,
        **counts,
        "findings": [{"kind": each.kind, "where": each.where, "message": each.message} for each in findings],
        "notes": [_line(note) for note in notes],
    }
    if not as_json:
        for note in notes:
            say(f"shoal: note: {_line(note)}")
    result(fields, as_json=as_json, text=lambda: "\n".join(map(_line, findings)) or summary)
    if findings:
        sys.exit(AuditError.exit_code)


def _line(finding: Finding) -> str:
    return f"{finding.where}: {finding.message}"
