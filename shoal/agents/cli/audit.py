"""Commands about the audit log: `shoal migrate` makes its schema, `shoal audit` proves what was released.

`audit verify` asks SQL and topic alone; `audit replay` also needs the contributions, or the events, and the key.
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

import typer
from sqlalchemy import func, select

from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.replay.run import ReplayReport
from shoal.agents.audit.replay.run import replay as replay_all
from shoal.agents.audit.replay.scan import committed
from shoal.agents.audit.session import load_config, open_session
from shoal.agents.audit.verify import Finding, compare_topic
from shoal.agents.audit.verify import verify as verify_log
from shoal.agents.cli.output import AsJson, ConfigPath, progress, result, say
from shoal.agents.kafka.settings import KafkaSettings, settings_of
from shoal.agents.kafka.topics import kafka_errors
from shoal.agents.worker.process import quiet_libraries, tune_garbage_collector
from shoal.models.config.file import Config, load
from shoal.models.errors import AuditError, KafkaError
from shoal.models.tables import Release

STEPS = 1000  # of the progress bar

From = Annotated[
    Literal["contributions", "events"],
    typer.Option("--from", help="events: recompute the contributions too, which takes longer."),
]


def migrate(config: ConfigPath, as_json: AsJson = False) -> None:
    """Bring the SQL schema of the audit log to the state this version needs.

    Safe to repeat, and with several at once. PostgreSQL needs it before any other command; SQLite does not.

    Example: shoal migrate shoal.toml
    """
    with Ledger.open(load(config).audit.url, migrate=True) as ledger:
        fields = {"log": ledger.log_id, "database": ledger.database.url.get_backend_name()}
        result(fields, as_json=as_json, text=lambda: f"audit log {ledger.log_id}: schema up to date")


def verify(config: ConfigPath, as_json: AsJson = False) -> None:
    """Check the audit log: hash chains, equivocation, ledger, and its releases against the topic. It needs no key.

    A line for each finding, and exit 1. A log that ends before the topic is behind, which is no finding. Without
    Kafka only SQL is checked.

    Example: shoal audit verify shoal.toml
    """
    quiet_libraries()
    loaded = load_config(config)
    with Ledger.open(loaded.audit.url) as ledger:
        findings = verify_log(ledger) + _topic_findings(loaded, ledger)
        with ledger.database.read() as connection:
            releases = connection.execute(select(func.count()).select_from(Release)).scalar_one()
    failures, notes = [f for f in findings if f.failure], [f for f in findings if not f.failure]
    _conclude(failures, notes, {"releases": releases}, f"the audit log is in order: {releases} releases", as_json)


def _topic_findings(config: Config, ledger: Ledger) -> list[Finding]:
    if not config.has_kafka:
        return [_not_compared("the configuration has no [kafka] section")]
    settings = settings_of(config)
    try:
        with kafka_errors(settings):
            return compare_topic(ledger, settings.app, _released(settings))
    except KafkaError as error:
        return [_not_compared(str(error))]
    except AuditError as error:
        return [Finding("topic", settings.releases, str(error))]


def _not_compared(why: str) -> Finding:
    return Finding("kafka", "topic", f"not compared, only SQL was checked: {why}", failure=False)


def _released(settings: KafkaSettings) -> Iterator[bytes]:
    """The values in the releases topic, for a caller without an event loop."""
    with asyncio.Runner() as runner:
        batches = committed(settings, settings.releases)
        while (records := runner.run(_next(batches))) is not None:
            yield from [record.value or b"" for record in records]


async def _next(batches: Any) -> Any:
    return await anext(batches, None)


def replay(config: ConfigPath, from_: From = "contributions", as_json: AsJson = False) -> None:
    """Make every release again from the contributions and the key; compare bit for bit with topic and audit log.

    A line for each finding, and exit 1. With --from events the contributions are made again from the events. Nothing
    is written, nothing is charged, and workers may run meanwhile.

    Example: shoal audit replay shoal.toml --from events
    """
    quiet_libraries()
    tune_garbage_collector()
    with open_session(config) as session, progress(f"replaying {session.config.kafka.app}", STEPS) as advance:

        def show(done: int, total: int) -> None:
            advance(done * STEPS // max(1, total))

        settings = settings_of(session.config)
        report = asyncio.run(replay_all(session, settings, from_events=from_ == "events", on_progress=show))
    counts = {"releases": report.releases, "confirmed": report.confirmed}
    _conclude(report.findings, report.notes, counts, _confirmed(report, from_), as_json)


def _confirmed(report: ReplayReport, from_: str) -> str:
    return (
        f"{report.confirmed} of {report.releases} releases and {report.activations} activations are confirmed "
        f"bit for bit from {'events, contributions' if from_ == 'events' else from_} and key"
    )


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
