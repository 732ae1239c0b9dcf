"""`shoal dead-letters` against a real broker: counts, and records that `shoal produce` takes once they are repaired."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from shoal.agents.cli.main import app
from shoal.models.errors import ConfigError, InputError, KafkaError
from shoal.models.records import MAX_DEAD_LETTER_BYTES, dead_letter_bytes
from tests.support.kafka import Kafka, Record

HEAD = """
[kafka]
brokers = "{brokers}"
app = "{app}"
[audit]
url = "sqlite:///log.db"
[privacy]
epsilon = 4
"""
METRIC = """
[[metric]]
name = "{name}"
topic = "{topic}"
user = "customer"
value = "{value}"
time = "at"
statistic = "sum"
range = [0, 200]
every = "1d"
max_contributions = 8
epsilon = 1
"""
GOOD = '{"customer":"ann","amount":1,"weight":2,"at":"2026-01-05T00:00:00Z"}'


class Shop:
    """An app with two metrics on a topic, whose dead letters are written by the test."""

    def __init__(self, kafka: Kafka, folder: Path) -> None:
        self.kafka, self.name = kafka, kafka.name("dead")
        self.topic, self.letters = f"{self.name}-purchases", f"{self.name}.dead-letters"
        self.config = folder / "shoal.toml"
        metrics = [METRIC.format(name=name, topic=self.topic, value=name) for name in ("amount", "weight")]
        self.config.write_text(HEAD.format(brokers=kafka.bootstrap, app=self.name) + "".join(metrics))

    def refuse(self, *letters: tuple[str, str, int, bytes | None], topic: str | None = None) -> None:
        """Put letters into the topic: reason, metric, offset and record."""
        raws = [dead_letter_bytes(why, name, topic or self.topic, 0, at, raw) for why, name, at, raw in letters]
        self.put(*raws)

    def put(self, *raws: bytes) -> None:
        self.kafka.produce(self.letters, [Record(b"", raw) for raw in raws], self.kafka.name())

    def call(self, *arguments: str, command: str = "dead-letters") -> Result:
        return CliRunner().invoke(app, [command, str(self.config), *arguments])

    def counts(self) -> Any:
        done = self.call("--json")
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)


@pytest.fixture
def shop(kafka: Kafka, tmp_path: Path) -> Shop:
    made = Shop(kafka, tmp_path)
    kafka.create_topic(made.letters)
    return made


def test_letters_are_counted_by_reason_and_metric(shop: Shop) -> None:
    assert shop.call().stdout == "no dead letters\n"
    both = [("bad-time", name, at, b"{}") for at in range(3) for name in ("amount", "weight")]
    shop.refuse(*both, ("no-value", "weight", 9, b"{}"))
    shop.put(b"no letter", b'{"reason":1}')
    text = shop.call()
    assert text.stdout.splitlines() == [
        f"bad-time                  3  amount ({shop.topic})",
        f"bad-time                  3  weight ({shop.topic})",
        f"no-value                  1  weight ({shop.topic})",
    ]
    assert text.stderr == "shoal: note: 2 records of the topic are no dead letters, left out\n"
    found = shop.counts()
    assert found["unreadable"] == 2
    assert found["dead_letters"][2] == {"reason": "no-value", "metric": "weight", "topic": shop.topic, "letters": 1}


def test_letters_say_that_records_are_keyed_by_something_else_or_are_framed(shop: Shop) -> None:
    # given a stretch of 100 records of which 80 are misplaced, by both metrics, and a few in another topic
    shop.refuse(*(("wrong-partition", name, at, b"{}") for at in range(100) if at % 5 for name in ("amount", "weight")))
    shop.refuse(*(("wrong-partition", "amount", at, b"{}") for at in range(9)), topic="another")
    # and records in a framing, and broken ones
    avro = b"\x00\x00\x00\x00\xc8\x06ann"
    shop.refuse(*(("not-json", "amount", at, raw) for at, raw in enumerate((avro, avro, b"{", b"", None))))
    # and one with a time to come
    shop.refuse(("too-far-ahead", "amount", 5, b"{}"))
    # then all are said with what to do
    misplaced, framed, ahead = shop.call().stdout.splitlines()[5:]
    assert "as in bookings, leave `time` out or raise max_ahead" in ahead
    assert misplaced.startswith(f"80 % of {shop.topic}[0] is keyed by something else than customer: 80 of 99 records")
    assert misplaced.endswith("as `shoal produce` does, or set [kafka] partitioner to theirs")
    assert framed.startswith(f"{shop.topic}: 2 letters of not-json are Avro or Protobuf in the framing of a schema")
    found = shop.counts()
    assert found["misplaced"] == [{"topic": shop.topic, "partition": 0, "misplaced": 80, "first": 1, "last": 99}]
    assert [(one["topic"], one["letters"]) for one in found["framings"]] == [(shop.topic, 2)]


def test_records_are_written_once_repaired_and_sent_again(shop: Shop, tmp_path: Path) -> None:
    # given records that both metrics refuse, one of them over two lines, and one that only one of them refuses
    bad = GOOD.replace("2026-01-05", "yesterday")
    broken = bad.replace(",", ",\r\n")
    for at, raw in ((8, bad), (7, broken)):
        shop.refuse(*(("bad-time", name, at, raw.encode()) for name in ("amount", "weight")))
    shop.refuse(("bad-value", "weight", 9, GOOD.replace("2", '"x"', 1).encode()))
    shop.refuse(("bad-time", "amount", 1, b"{}"), topic="another")
    # when they are written, each is a line, in the order of their topic
    out = tmp_path / "refused.jsonl"
    done = shop.call("--reason", "bad-time", "--out", str(out))
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{out}: 2 records of topic {shop.topic}\n", "")
    assert [json.loads(line) for line in out.read_text().splitlines()] == [json.loads(bad)] * 2
    assert out.stat().st_mode & 0o777 == 0o600
    # then they can be repaired and sent as they are
    out.write_text(out.read_text().replace("yesterday", "2026-01-05"))
    shop.kafka.create_topic(shop.topic, 2)
    assert "2 events to topic" in shop.call("--input", str(out), command="produce").stdout
    sent = [json.loads(record.value or b"") for record in shop.kafka.read_committed(shop.topic)]
    assert sent == [json.loads(GOOD)] * 2
    # what the other metric has counted is said
    partly = shop.call("--reason", "bad-value")
    assert len(partly.stdout.splitlines()) == 1
    assert "1 records were refused by some metrics alone: sent again, they count twice" in partly.stderr


def test_what_cannot_be_written_as_it_was_is_said(shop: Shop, tmp_path: Path) -> None:
    raws = (b"x" * (MAX_DEAD_LETTER_BYTES + 1), None, b"", b"\xff\xfe")
    shop.refuse(*(("not-json", name, at, raw) for at, raw in enumerate(raws) for name in ("amount", "weight")))
    out = tmp_path / "refused.jsonl"
    done = shop.call("--reason", "not-json", "--out", str(out), "--json")
    assert json.loads(done.stdout) == {
        "topic": shop.topic, "out": str(out), "records": 1, "cut": 1, "empty": 2, "replaced": 1, "counted_elsewhere": 0,
    }  # fmt: skip
    assert out.read_text() == "\ufffd\ufffd\n"
    assert [line.split()[2] for line in done.stderr.splitlines()] == ["1", "2", "1"]
    assert "no record of topic" in shop.call("--reason", "late").stderr


def test_what_is_wrong_is_said_in_a_line(shop: Shop, tmp_path: Path) -> None:
    shop.refuse(("late", "amount", 1, GOOD.encode()))
    assert "no metric reads topic 'other'" in str(shop.call("--reason", "late", "--topic", "other").exception)
    assert isinstance(shop.call("--reason", "late", "--topic", "other").exception, ConfigError)
    full = shop.call("--reason", "late", "--out", "/dev/full").exception
    assert isinstance(full, InputError)
    assert "make room" in str(full)
    shop.config.write_text(shop.config.read_text().replace(f'"{shop.name}"', '"nobody"'))
    missing = shop.call().exception
    assert isinstance(missing, KafkaError)
    assert "no topic nobody.dead-letters, or no right to see it" in str(missing)
