"""`shoal audit` as a script sees it: what real workers left in Kafka and SQL is confirmed, and whatever is changed in
it afterwards is found."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from aiokafka import TopicPartition
from typer.testing import CliRunner

from shoal.agents.audit import key_file
from shoal.agents.audit.replay import against_log, matching
from shoal.agents.audit.replay.run import replay as replay_all
from shoal.agents.audit.replay.scan import Scan
from shoal.agents.audit.session import load_config, open_session
from shoal.agents.cli.main import app
from shoal.agents.kafka.settings import settings_of
from shoal.models.digests import chain
from shoal.models.errors import AuditError, ConfigError, KafkaError, KeyFileError
from tests.support import tampering
from tests.support.audit import audit, replay
from tests.support.clone import Clone, Original
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits

SOURCES, HOMES = {"events": 2, "taps": 1}, 2
FULL = {"algorithm": "full", "epsilon": 400, "failure": 0.5, "users": 9}  # so much that levels activate
METRICS = (
    FULL | {"name": "hourly", "every": "1h"},
    {"name": "city", "group": "city", "every": "6h", "lateness": "1h"},  # naive: partials
    FULL | {"name": "city-full", "group": "city", "every": "1h"},
    FULL | {"name": "taps", "topic": "taps", "group": "city", "every": "contribution"},
)


@pytest.fixture(scope="module")
def original(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Original]:
    """Events of two topics, all released and logged by a worker that has left."""
    folder = tmp_path_factory.mktemp("audit")
    with Deployment(kafka, folder, *METRICS, sources=SOURCES, epsilon=9000, partitions=HOMES) as shoals:
        events, taps = visits(1_200, step=300), visits(300, seed=2)
        shoals.oracle.run(events)
        shoals.oracle.run(taps, "taps")
        shoals.worker().wait_owns(5)
        shoals.produce_slowly(events, seconds=2)
        shoals.produce_slowly(taps, seconds=1, topic="taps")
        shoals.expect_equality()
        shoals.stop_all()
        yield Original(shoals, SOURCES, HOMES)


@pytest.fixture
def clone(original: Original, tmp_path: Path) -> Clone:
    return Clone(original, tmp_path)


# ---------------------------------------------------------------- what is as it was


@pytest.mark.usefixtures("backend")
def test_what_a_worker_released_is_confirmed(original: Original) -> None:
    deployment = original.deployment
    count = len(deployment.releases())
    assert audit("verify", deployment.config).fields == {"ok": True, "releases": count, "findings": [], "notes": []}
    confirmed = {"ok": True, "releases": count, "confirmed": count, "findings": [], "notes": []}
    assert audit("replay", deployment.config).fields == confirmed
    assert replay(deployment.config).fields == confirmed


def test_a_program_asks_for_a_report(original: Original) -> None:
    told: list[tuple[int, int]] = []
    with open_session(original.deployment.config) as session:
        settings = settings_of(session.config)
        report = asyncio.run(replay_all(session, settings, on_progress=lambda done, total: told.append((done, total))))
    assert report.ok
    assert report.releases == report.confirmed > report.activations > 0
    assert told == sorted(told)
    assert told[-1][0] > 0


def test_people_read_a_line(original: Original) -> None:
    config = str(original.deployment.config)
    count = len(original.deployment.releases())
    said = CliRunner().invoke(app, ["audit", "verify", config])
    assert (said.stdout, said.stderr, said.exit_code) == (f"the audit log is in order: {count} releases\n", "", 0)
    said = CliRunner().invoke(app, ["audit", "replay", config])
    assert said.stdout.startswith(f"{count} of {count} releases and ")
    assert said.stdout.endswith("activations are confirmed bit for bit from contributions and key\n")


def test_a_clone_is_confirmed_too(clone: Clone) -> None:
    clone.publish()
    assert audit("verify", clone.config).ok
    assert replay(clone.config).ok


def test_a_long_log_is_gone_through_in_pieces(original: Original, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "AHEAD", 7)
    monkeypatch.setattr(against_log, "BATCH", 5)
    assert replay(original.deployment.config).ok


# ---------------------------------------------------------------- the log

RELEASE_2 = "WHERE metric = 'city' AND \"group\" = 'A' AND seq = 2"
LAST = "WHERE metric = 'hourly' AND seq = (SELECT max(seq) FROM release WHERE metric = 'hourly')"
FIRST = "WHERE metric = 'hourly' AND level = (SELECT min(level) FROM activation WHERE metric = 'hourly')"


@pytest.mark.parametrize(
    ("statement", "verified", "replayed"),
    [
        (f"UPDATE release SET body = replace(body, ':', ':1') {RELEASE_2}", {"changed", "columns"}, {"changed"}),
        (f"DELETE FROM release {RELEASE_2}", {"missing"}, {"missing"}),
        (f"UPDATE release SET previous_hash = zeroblob(32) {RELEASE_2}", {"chain", "changed"}, set()),
        (f"DELETE FROM activation {FIRST}", set(), {"missing"}),
        (f"UPDATE activation SET body = replace(body, '\"samples\":', '\"samples\":1') {FIRST}", set(), {"changed"}),
        (f"UPDATE activation SET prior = '7.0' {FIRST}", {"columns"}, set()),
        (f"UPDATE activation SET level = 30, body = replace(body, 'level\":', 'level\":30, \"was\":') {FIRST}", set(),
         {"missing", "forged"}),
        ("UPDATE metric_version SET charge_epsilon = '9001' WHERE metric = 'city'", {"budget"}, set()),
        ("UPDATE metric_version SET key_fingerprint = 'f00d' WHERE metric = 'city'", set(), {"key"}),
    ],
)  # fmt: skip
def test_a_changed_log_is_found(
    original: Original, tmp_path: Path, statement: str, verified: set[str], replayed: set[str]
) -> None:
    # given a copy of the log of the worker that was there
    deployment, config = original.deployment, tmp_path / "shoal.toml"
    clone = Clone(original, tmp_path)
    for table in ("metric_version", "owner", "partition_count", "release", "activation"):
        clone.log(f"UPDATE {table} SET app = ?", deployment.app)
    contributions = f"{deployment.app}.contributions"
    clone.log("UPDATE partition_count SET topic = ? WHERE topic LIKE '%.contributions'", contributions)
    config.write_text(deployment.config.read_text())
    # when somebody changes it
    assert clone.log(statement) == 1
    # then the audits say so
    assert audit("verify", config).kinds == verified
    said = audit("replay", config)
    assert said.kinds == replayed, said.text


def test_a_log_that_is_behind_is_a_note(clone: Clone) -> None:
    clone.publish()
    assert clone.log(f"DELETE FROM release {LAST}") == 1
    assert clone.log("DELETE FROM activation WHERE metric = 'hourly'") > 0
    assert clone.log("UPDATE owner SET activations = 0 WHERE metric = 'hourly'") == 1
    said = audit("verify", clone.config)
    assert (said.ok, said.fields["notes"]) == (True, [f'app "{clone.app}": the log is 1 releases behind the topic'])
    said = audit("replay", clone.config)
    assert said.ok
    assert said.fields["notes"][0] == "audit log: it is 1 releases behind the topic"
    assert said.fields["notes"][1].endswith("activations behind the topic")


def test_a_release_that_only_the_log_has_is_found(clone: Clone) -> None:
    # given a forged release at the end of a chain, digests and all
    clone.publish()
    last = clone.rows(
        f'SELECT app, metric, version, "group", seq, id, at, body, previous_hash, hash FROM release {LAST}'
    )
    *place, seq, name, at, body, _, digest = last[0]
    name, fields = f"{name.rpartition('/')[0]}/{seq + 1}", orjson.loads(body)
    body = orjson.dumps(fields | {"seq": seq + 1, "id": name})
    forged = (*place, seq + 1, name, at, body.decode(), digest, chain(digest, body))
    assert clone.log(f"INSERT INTO release VALUES ({', '.join('?' * len(forged))})", *forged) == 1
    # then the log alone is sound, and the topic and the replay know better
    assert audit("verify", clone.config).kinds == {"topic"}
    assert replay(clone.config).kinds == {"forged"}


# ---------------------------------------------------------------- topics


@pytest.mark.parametrize(
    ("tamper", "kinds"),
    [
        (tampering.forge_release, {"forged"}),
        (tampering.write_garbage, {"forged"}),
        (tampering.lose_release, {"missing"}),
        (tampering.lose_last_releases, {"missing"}),
        (tampering.swap_releases, {"missing", "forged"}),
        (tampering.change_release, {"changed", "header"}),
        (tampering.change_record_key, {"changed"}),
        (tampering.lose_header, {"header"}),
        (tampering.lose_activation, {"missing"}),
        (tampering.forge_activation, {"forged"}),
        (tampering.lose_message, {"contributions"}),
        (tampering.repeat_message, {"contributions"}),
        (tampering.break_message, {"contributions"}),
        (tampering.move_clock_back, {"clock", "forged", "state"}),
        (tampering.forge_count, {"state"}),
        (tampering.forge_log, {"state"}),
        (tampering.forget_state, {"forged"}),
        (tampering.forget_bound, {"contributions"}),
        (tampering.forge_bound_log, {"state"}),
        (tampering.forge_numbers, {"contributions"}),
    ],
    ids=lambda case: case.__name__ if callable(case) else "",
)
def test_changed_topics_are_found(clone: Clone, tamper: Callable[[Clone], None], kinds: set[str]) -> None:
    tamper(clone)
    clone.publish()
    said = replay(clone.config)
    assert said.kinds == kinds, said.text
    assert not said.ok


@pytest.mark.parametrize(("tamper", "metric"), [(tampering.lose_row, "city-full"), (tampering.change_partial, "city")])
def test_changed_contributions_are_not_what_the_events_yield(
    clone: Clone, tamper: Callable[[Clone], None], metric: str
) -> None:
    tamper(clone)
    clone.publish()
    assert f" {metric}/1|" in replay(clone.config).text


# ---------------------------------------------------------------- configuration and key


def test_another_key_confirms_nothing(clone: Clone) -> None:
    clone.publish()
    (clone.folder / "shoal.key").unlink()
    key_file.new(clone.folder / "shoal.key")
    said = replay(clone.config)
    assert said.kinds == {"key", "changed", "contributions"}
    assert said.fields["confirmed"] == 0
    assert "and: " in said.text  # many findings of one kind are counted, not listed


def test_verify_needs_no_key(clone: Clone) -> None:
    clone.publish()
    (clone.folder / "shoal.key").unlink()
    assert audit("verify", clone.config).ok
    with pytest.raises(KeyFileError):
        audit("replay", clone.config)


def test_other_parameters_are_named(clone: Clone) -> None:
    clone.publish()
    clone.change_config('lateness = "1h"', 'lateness = "2h"')
    said = audit("replay", clone.config)
    assert said.fields["findings"][0] == {
        "kind": "parameters",
        "where": "configuration",
        "message": 'metric "city" version 1 is registered with other parameters',
    }


def test_without_brokers_only_sql_is_checked(clone: Clone) -> None:
    clone.change_config(clone.original.deployment.kafka.bootstrap, "127.0.0.1:1")
    said = audit("verify", clone.config)
    assert said.ok
    assert said.fields["notes"][0].startswith(
        "topic: not compared, only SQL was checked: 127.0.0.1:1: no broker answers"
    )
    with pytest.raises(KafkaError, match="no broker answers"):
        audit("replay", clone.config)
    # and people read the note on stderr, the findings on stdout
    assert clone.log(f"DELETE FROM release {RELEASE_2}") == 1
    told = CliRunner().invoke(app, ["audit", "verify", str(clone.config)])
    assert told.exit_code == 1
    assert told.stderr.startswith("shoal: note: topic: not compared")
    assert told.stdout == f'app "{clone.app}" metric "city" version 1 group "A" release 3: 1 before it are missing\n'


def test_without_a_kafka_section_only_sql_is_checked(clone: Clone) -> None:
    text = clone.config.read_text()
    section = text[text.index("[kafka]") : text.index("[audit]")]
    clone.change_config(section, "")
    said = audit("verify", clone.config)
    assert said.fields["notes"] == [
        "topic: not compared, only SQL was checked: the configuration has no [kafka] section"
    ]
    assert said.ok
    with pytest.raises(AuditError, match="has released nothing yet"):  # under the name of apps that have none
        audit("replay", clone.config)
    # and where workers have published under that name, a replay says what it lacks
    assert clone.log("UPDATE partition_count SET app = 'shoal'") > 0
    with pytest.raises(ConfigError, match="no .kafka. section, which this command needs"):
        audit("replay", clone.config)


def test_without_topics_only_sql_is_checked(clone: Clone) -> None:
    said = audit("verify", clone.config)
    assert said.ok
    assert f"no topic {clone.app}.releases" in said.fields["notes"][0]
    with pytest.raises(KafkaError, match=f"no topic {clone.app}.activations, "):
        audit("replay", clone.config)


def test_a_changed_partition_count_is_refused(clone: Clone) -> None:
    clone.publish()
    assert clone.log("UPDATE partition_count SET partitions = 3 WHERE topic LIKE '%contributions'") == 1
    with pytest.raises(KafkaError, match="has 2 partitions and is registered with 3"):
        audit("replay", clone.config)


def test_what_is_no_release_is_found_in_the_topic(clone: Clone) -> None:
    tampering.write_garbage(clone)
    clone.publish()
    said = audit("verify", clone.config)
    assert (
        said.text
        == f"{clone.app}.releases: a record is neither release nor activation; someone else writes into shoal's topics"
    )


def test_versions_that_no_worker_ran_are_left_out(clone: Clone) -> None:
    # given a metric that ran over a file, and one that has not run yet
    columns = "digest, parameters, key_fingerprint, epsilon, delta, unit, relation, charge_epsilon, charge_delta"
    filed = f"SELECT app, 'filed', version, {columns}, 'ended', 'then', 'digest', registered, added FROM metric_version"
    assert clone.log(f"INSERT INTO metric_version {filed} WHERE metric = 'city'") == 1
    text = clone.config.read_text()
    clone.config.write_text(text + text[text.rindex("[[metric]]") :].replace('"taps"', '"new"', 1))
    clone.publish()
    said = audit("replay", clone.config)
    assert said.ok, said.text
    assert said.fields["notes"] == [
        'configuration: metric "filed" version 1 belongs to file runs; repeat it with `shoal run`, which compares '
        "every byte",
        'configuration: metric "new" version 1 is not registered yet',
    ]


def test_a_scan_ends_where_it_is_told(original: Original) -> None:
    deployment = original.deployment

    settings = settings_of(load_config(deployment.config))
    releases = [record for record in deployment.kafka.read_committed(settings.releases) if record.partition == 0]
    offsets = [record.offset for record in releases]  # between them are ends of transactions

    async def read(first: int, end: int) -> list[int]:
        async with Scan(settings) as scan:
            records = scan.read(TopicPartition(settings.releases, 0), first, end)
            return [record.offset async for some in records for record in some]

    assert asyncio.run(read(offsets[1], offsets[4])) == offsets[1:4]
    assert asyncio.run(read(offsets[0] + 1, offsets[-1])) == offsets[1:-1]


def test_a_run_over_a_file_is_repeated_not_replayed(original: Original) -> None:
    config = original.deployment.oracle.folder / "shoal.toml"
    assert audit("verify", config).ok
    with pytest.raises(AuditError, match="replay needs Kafka.* to repeat a run: shoal run"):
        audit("replay", config)


def test_what_never_ran_has_nothing_to_replay(clone: Clone) -> None:
    clone.change_config("sqlite:///shoal.db", "sqlite:///new.db")
    with pytest.raises(AuditError, match="has released nothing yet"):
        audit("replay", clone.config)
