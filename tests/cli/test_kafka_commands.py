"""`shoal topics`, `shoal check` and `shoal produce` against a real broker."""

import asyncio
import time
from pathlib import Path

import orjson
import pytest
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from typer.testing import CliRunner, Result

from shoal.agents.audit import key_file
from shoal.agents.audit.session import load_config
from shoal.agents.cli.commands import worker
from shoal.agents.cli.main import app
from shoal.agents.inspection.times_ahead import AFTER
from shoal.agents.kafka.settings import settings_of
from shoal.agents.kafka.topics import admin
from shoal.models.config.file import load
from shoal.models.errors import ConfigError, InputError, KafkaError, LedgerError
from shoal.models.times import iso
from shoal.stream.partitioning import PARTITIONERS
from tests.support.feeds import after_lengths, report, snapshot
from tests.support.kafka import Kafka
from tests.support.workers import wait_until

CONFIG = """
[kafka]
brokers = "{brokers}"
app = "{name}"
partitions = 3
{more}
[audit]
url = "sqlite:///log.db"
[privacy]
key_file = "shoal.key"
epsilon = 4
[[metric]]
name = "amount"
topic = "{name}-sales"
user = "who"
value = "amount"
time = "at"
statistic = "mean"
algorithm = "full"
range = [0, 10]
epsilon = 1
max_contributions = 5
users = 10
every = "1d"
"""


class Desk:
    """A folder with a configuration and a key, and the commands in it."""

    def __init__(self, folder: Path, kafka: Kafka) -> None:
        self.folder, self.kafka = folder, kafka
        self.name = kafka.name("desk")
        key_file.new(folder / "shoal.key")
        self.configure()

    def configure(self, old: str = "", new: str = "", *, more: str = "", brokers: str | None = None) -> None:
        text = CONFIG.format(brokers=brokers or self.kafka.bootstrap, name=self.name, more=more).replace(old, new)
        (self.folder / "shoal.toml").write_text(text)

    @property
    def path(self) -> Path:
        return self.folder / "shoal.toml"

    def shoal(self, command: str, *arguments: object) -> Result:
        return CliRunner().invoke(app, [command, str(self.path), *map(str, arguments)])

    def ok(self, command: str, *arguments: object) -> str:
        result = self.shoal(command, *arguments)
        if result.exception is not None:
            raise result.exception
        return result.stdout


@pytest.fixture
def desk(tmp_path: Path, kafka: Kafka) -> Desk:
    return Desk(tmp_path, kafka)


def test_topics_makes_what_is_missing_and_then_finds_it(desk):
    made = orjson.loads(desk.ok("topics", "--json"))
    assert made["topics"][f"{desk.name}-sales"] == 3
    assert made["created"] == sorted(made["topics"])
    again = desk.ok("topics")
    assert f"{desk.name}.contributions: 3 partitions" in again
    assert "made" not in again


def test_check_says_what_would_be_charged_and_guaranteed_to_whom(desk):
    desk.ok("topics")
    text = desk.ok("check")
    assert "would be charged epsilon 1" in text
    assert "epsilon = 1 per person, for ever: all values of one person in this metric, however often" in text
    assert f"{desk.name}.contributions" in text
    found = orjson.loads(desk.ok("check", "--json"))
    assert found["metrics"][0]["registered"] is False
    assert found["partitions"] == {f"{desk.name}-sales": 3, f"{desk.name}.contributions": 3}


def test_check_refuses_what_a_worker_would_refuse(desk):
    assert isinstance(desk.shoal("check").exception, KafkaError), "topics are missing"
    desk.ok("topics")
    desk.configure("partitions = 3", "partitions = 4")
    assert isinstance(desk.shoal("check").exception, KafkaError), "a count that is not there"
    desk.configure("epsilon = 4", "epsilon = 0.5")
    assert isinstance(desk.shoal("check").exception, LedgerError), "the budget"
    desk.configure(brokers="127.0.0.1:1")
    assert "no broker answers" in str(desk.shoal("check").exception)


def test_check_tells_rights_topics_and_policies_apart(desk):
    def states() -> dict[str, list[str]]:
        shown = orjson.loads(desk.shoal("check", "--json").stdout)
        return {one["name"]: [line["state"] for line in one["lines"]] for one in shown["sections"]}

    missing = states()
    assert (missing["brokers"], missing["rights"], missing["topics"]) == (["ok"], ["ok"], ["failed"])
    assert missing["policies"] == ["not checked"]
    desk.ok("topics")
    assert states()["topics"] == ["ok"]
    assert set(states()["policies"]) == {"ok", "warning"}
    asyncio.run(set_policy(desk, "retention.ms", "1000"))
    # a broker may take a moment to tell what it was told
    wait_until(lambda: states()["policies"] == ["failed"], 60, lambda: str(states()))
    assert states()["topics"] == ["ok"]


def test_check_says_how_far_a_wrong_clock_can_push_each_metric(desk):
    source = f"{desk.name}-sales"
    desk.ok("topics")
    # given the defaults of a broker of today: an hour for timestamps, and an hour for a metric of a day
    said = f"topic {source}: a wrong clock pushes event time ahead by 2h at most (CreateTime, {AFTER})"
    assert said in desk.ok("check")
    found = orjson.loads(desk.ok("check", "--json"))
    assert found["times_ahead"] == [
        {"metric": "amount", "topic": source, "timestamps": "CreateTime", "timestamps_ahead": 3600, "ahead": 7200}
    ]
    # when timestamps have no limit, as in older brokers, then the command is said that sets one
    asyncio.run(set_config(desk, source, AFTER, str(2**63 - 1)))
    wait_until(lambda: "without limit" in desk.ok("check"), 60, lambda: desk.ok("check"))
    command = f"kafka-configs --bootstrap-server {desk.kafka.bootstrap} --alter --entity-type topics"
    setting = f"--entity-name {source} --add-config message.timestamp.type=LogAppendTime"
    assert f"-> run {command} {setting}\n" in desk.ok("check")
    assert orjson.loads(desk.ok("check", "--json"))["times_ahead"][0]["ahead"] is None
    # and a larger `max_ahead` is warned of
    desk.configure('every = "1d"', 'every = "1d"\nmax_ahead = "30d"')
    assert "max_ahead is 30d, above its default of 1h: one fast clock closes ticks that much early" in desk.ok("check")


async def set_config(desk, topic: str, key: str, value: str) -> None:
    async with admin(settings_of(load(desk.path))) as client:
        await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs={key: value})])


async def set_policy(desk, key: str, value: str) -> None:
    """A setting of the topic of releases, which must keep everything."""
    await set_config(desk, f"{desk.name}.releases", key, value)


def test_check_needs_no_kafka_where_the_configuration_has_none(desk):
    desk.path.write_text("[audit]" + desk.path.read_text().split("[audit]")[1])
    result = desk.shoal("check")
    assert result.exit_code == 0
    assert "only what `shoal run` needs was checked" in result.stderr


def test_check_says_all_that_needs_no_broker_before_it_says_that_there_is_none(desk):
    desk.configure(brokers="127.0.0.1:1")
    result = desk.shoal("check")
    assert "failed       127.0.0.1:1: no broker answers" in result.stdout
    assert "not checked  it needs a broker that answers" in result.stdout
    assert "epsilon = 1 per person, for ever: all values of one person in this metric, however often" in result.stdout
    assert isinstance(result.exception, KafkaError)
    as_json = orjson.loads(desk.shoal("check", "--json").stdout)
    assert as_json["partitions"] == {}
    assert as_json["kafka"].startswith("127.0.0.1:1: no broker answers")


def test_check_warns_of_what_a_broken_disk_could_take_away(desk):
    desk.ok("topics")
    warnings = orjson.loads(desk.ok("check", "--json"))["warnings"]
    replicas = f"topics {desk.name}-sales, {desk.name}.* have one replica; what they hold is lost with its"
    assert [warning for warning in warnings if replicas in warning]
    assert "shoal: warning: topics" in desk.shoal("check").stderr


def test_a_command_that_needs_brokers_says_that_the_configuration_names_none(desk, monkeypatch):
    (desk.folder / "events.jsonl").write_bytes(b"{}")
    desk.path.write_text("[audit]" + desk.path.read_text().split("[audit]")[1])
    for command in (["topics"], ["produce", "--input", desk.folder / "events.jsonl"], ["worker"]):
        refused = desk.shoal(*command).exception
        assert isinstance(refused, ConfigError)
        assert "no [kafka] section, which this command needs; add one with brokers and app, or set" in str(refused)
    # brokers in the environment are brokers
    monkeypatch.setenv("SHOAL_KAFKA_BROKERS", "127.0.0.1:1")
    assert isinstance(desk.shoal("topics").exception, KafkaError)


def test_produce_sends_lines_as_they_stand_to_their_users_partitions_and_ends_the_tick(desk):
    desk.ok("topics")
    events = [
        b'{"who": "user%d", "amount": 1e400, "at": "2024-01-0%dT01:00:00Z"}' % (i % 7, i % 4 + 1) for i in range(50)
    ]
    (desk.folder / "events.jsonl").write_bytes(b"\n".join([*events, b"nonsense"]))
    assert "51 events" in desk.ok("produce", "--input", desk.folder / "events.jsonl", "--end")
    records = desk.kafka.read_committed(f"{desk.name}-sales")
    clocks = [record for record in records if record.value is None]
    assert sorted(record.partition for record in clocks) == [0, 1, 2]
    assert {dict(record.headers)["shoal-clock"] for record in clocks} == {b"2024-01-05T00:00:00Z"}
    sent = [record for record in records if record.value is not None]
    assert sorted(record.value for record in sent) == sorted([*events, b"nonsense"])
    for record in sent:
        if record.key is not None:
            assert record.partition == PARTITIONERS["murmur2"](record.key, 3)
        else:
            assert (record.value, record.partition) == (b"nonsense", 0)


def test_produce_sends_each_position_of_a_feed_once_to_its_vehicles_partition(desk):
    for old, new in (('"who"', '"vehicle.id"'), ('"amount"\ntime', '"position.speed"\ntime'), ('"at"', '"timestamp"')):
        desk.path.write_text(desk.path.read_text().replace(old, new))
    desk.ok("topics")
    reports = [report(f"bus-{number % 7}", 1_704_067_200 + number, speed=number) for number in range(50)]
    messages = [snapshot(reports[:30]), snapshot(reports[23:30]), snapshot(reports[30:])]
    (desk.folder / "events.pb").write_bytes(after_lengths(messages))
    assert "50 events" in desk.ok("produce", "--input", desk.folder / "events.pb")
    records = desk.kafka.read_committed(f"{desk.name}-sales")
    assert sorted((orjson.loads(record.value) for record in records), key=lambda event: event["timestamp"]) == reports
    assert all(record.partition == PARTITIONERS["murmur2"](record.key, 3) for record in records)


def test_produce_ends_each_metrics_own_tick_and_says_which_stay_open(desk):
    # given times two days ahead, for which no clock may close a day yet, and a metric whose times are past
    of_past = desk.path.read_text().partition("[[metric]]")[2].replace('"amount"\ntopic', '"past"\ntopic')
    desk.path.write_text(desk.path.read_text() + "\n[[metric]]" + of_past.replace('"at"', '"seen"'))
    desk.ok("topics")
    ahead = int(time.time()) + 2 * 86_400
    line = b'{"who": "user1", "amount": 1, "at": %d, "seen": "2024-01-01T01:00:00Z"}' % ahead
    (desk.folder / "events.jsonl").write_bytes(line)
    said = orjson.loads(desk.ok("produce", "--input", desk.folder / "events.jsonl", "--end", "--json"))
    # then the day of the past is closed, and the other stays open until an hour before its end
    end = (ahead // 86_400 + 1) * 86_400 * 10**6
    assert said["open"] == [{"metric": "amount", "end": iso(end), "closes_from": iso(end - 3600 * 10**6)}]
    clocks = [record for record in desk.kafka.read_committed(f"{desk.name}-sales") if record.value is None]
    assert [dict(record.headers)["shoal-clock"] for record in clocks] == [b"2024-01-02T00:00:00Z"] * 3


def test_produce_of_nothing_ends_nothing(desk):
    desk.ok("topics")
    (desk.folder / "events.jsonl").write_bytes(b"")
    assert orjson.loads(desk.ok("produce", "--input", desk.folder / "events.jsonl", "--end", "--json"))["events"] == 0
    assert desk.kafka.read_committed(f"{desk.name}-sales") == []


def test_produce_says_what_is_missing(desk):
    (desk.folder / "events.jsonl").write_bytes(b"{}")
    missing = desk.shoal("produce", "--input", desk.folder / "events.jsonl").exception
    assert isinstance(missing, KafkaError)
    assert "create it with `shoal topics`" in str(missing)
    assert isinstance(desk.shoal("produce", "--input", "absent.jsonl").exception, InputError | KafkaError)
    desk.configure(brokers="127.0.0.1:1")
    away = desk.shoal("produce", "--input", desk.folder / "events.jsonl").exception
    assert "no broker answers" in str(away)


def test_tls_and_sasl_are_passed_through(desk):
    (desk.folder / "password").write_text("secret\n")
    desk.configure(
        more='security_protocol = "SASL_SSL"\nsasl_mechanism = "SCRAM-SHA-512"\nsasl_username = "u"\n'
        'sasl_password_file = "password"'
    )
    client = settings_of(load_config(desk.path)).client
    assert client["sasl_plain_password"] == "secret"
    assert client["ssl_context"] is not None
    desk.configure(more='security_protocol = "SASL_PLAINTEXT"')
    with pytest.raises(ConfigError, match="sasl_password_file is missing"):
        settings_of(load_config(desk.path))
    desk.configure(more='security_protocol = "SASL_PLAINTEXT"\nsasl_password_file = "absent"')
    with pytest.raises(ConfigError, match="cannot be read"):
        settings_of(load_config(desk.path))
    desk.configure(more='security_protocol = "SSL"\nssl_cafile = "absent"')
    with pytest.raises(ConfigError, match="TLS files cannot be used"):
        settings_of(load_config(desk.path))


def test_a_worker_waits_for_its_database(desk, monkeypatch, postgresql_url):
    desk.configure("sqlite:///log.db", "postgresql+psycopg://nobody@127.0.0.1:1/none")
    delays: list[float] = []

    def sleep(seconds: float) -> None:
        delays.append(seconds)
        if len(delays) == 3:
            desk.configure("sqlite:///log.db", postgresql_url)

    monkeypatch.setattr(time, "sleep", sleep)
    with pytest.raises(LedgerError, match="shoal migrate"), worker._patient_session(desk.path):
        pass
    assert delays == [0.5, 1.0, 2.0]
