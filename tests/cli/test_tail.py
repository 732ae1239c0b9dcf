"""`shoal tail` against a real broker: what is published comes in lines, and what is wrong is said in one."""

import json
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from shoal.agents.cli.commands import tail
from shoal.agents.cli.main import app
from shoal.agents.tail.lines import Lines
from shoal.models.errors import KafkaError
from shoal.models.records import activation_bytes
from tests.support import nursery
from tests.support.kafka import Kafka, Record
from tests.support.releases import START, release
from tests.support.workers import PATIENCE, wait_until

CONFIG = """
[kafka]
brokers = "{brokers}"
app = "{app}"
[audit]
url = "sqlite:///log.db"
[privacy]
epsilon = 4
[[metric]]
name = "basket"
topic = "{app}-purchases"
user = "customer"
value = "amount"
time = "at"
statistic = "sum"
range = [0, 200]
every = "1d"
max_contributions = 8
epsilon = 1
"""


class Shop:
    """An app whose releases are published by the test."""

    def __init__(self, kafka: Kafka, folder: Path) -> None:
        self.kafka, self.name = kafka, kafka.name("tail")
        self.config = folder / "shoal.toml"
        self.config.write_text(CONFIG.format(brokers=kafka.bootstrap, app=self.name))
        self.releases, self.activations = f"{self.name}.releases", f"{self.name}.activations"

    def open(self) -> None:
        self.kafka.create_topic(self.releases, 2)
        self.kafka.create_topic(self.activations, 1)

    def publish(self, *releases: dict[str, Any], partition: int = 0) -> None:
        records = [Record(b"", json.dumps(one).encode(), partition=partition) for one in releases]
        self.kafka.produce(self.releases, records, self.kafka.name())

    def tail(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, ["tail", str(self.config), *arguments])


@pytest.fixture
def shop(kafka: Kafka, tmp_path: Path) -> Shop:
    return Shop(kafka, tmp_path)


def test_what_is_there_comes_in_the_order_of_time_in_words_or_as_it_was_published(shop: Shop) -> None:
    # given releases of two groups in two partitions, an activation, and a record that is none
    shop.open()
    first = [release("basket", day, 30.0 + day / 8, 1.3, group="BE") for day in (1, 2, 3)]
    shop.publish(*first)
    shop.publish(release("basket", 2, None, group="FR\x1b[2J", samples=0), partition=1)
    shop.publish({"nothing": 1}, partition=1)
    begun = activation_bytes("basket", 1, "BE", 3, (START + 3600) * 1_000_000, 34.61, 0.1, 8)
    shop.kafka.produce(shop.activations, [Record(b"", begun)], shop.kafka.name())
    # then a person gets the last of them by time, with the noise
    done = shop.tail("--once", "--last", "3")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "2026-03-03  basket  BE  30.3 ± 1.3 (28.9 to 31.6)  20 samples",
        "2026-03-03  basket  FR\\u001b[2J  no release  0 samples",
        "2026-03-04  basket  BE           30.4 ± 1.3 (29.0 to 31.7)  30 samples",
    ]
    assert done.stderr == "shoal: note: a record is no release, and left out, as all that are none\n"
    # all of them, if asked for, and with what began to count
    words = shop.tail("--once", "--from-beginning").stdout
    assert len(words.splitlines()) == 5
    assert "blocks of level 3 count from here on, clipped around 34.61" in words
    # a program gets the bytes that were published, of the group that it names
    found = shop.tail("--once", "--json", "--group", "BE", "--metric", "basket", "--no-activations").stdout
    assert found.splitlines() == [json.dumps(one) for one in first]


def test_the_last_releases_are_found_without_reading_what_is_before_them(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given many releases in one partition, then few in transactions of their own, of which each has a marker
    shop.open()
    shop.publish(*(release("basket", 1 + number, 30.0, 1.3, group="BE") for number in range(3000)))
    for number in range(50):
        shop.publish(release("basket", 3001 + number, 30.0, 1.3, group="FR" if number < 40 else "BE"))
    shop.publish(release("basket", 2, 30.0, 1.3, group="DE"), partition=1)
    looked_at: list[bytes | None] = []
    chosen = Lines._chosen

    def noted(self: Lines, raw: bytes | None) -> Any:
        looked_at.append(raw)
        return chosen(self, raw)

    monkeypatch.setattr(Lines, "_chosen", noted)

    def last(*options: str) -> list[str]:
        looked_at.clear()
        return shop.tail("--once", "--json", *options).stdout.splitlines()

    everything = last("--from-beginning")
    assert len(everything) == len(looked_at) == 3051
    # then the last ones come without the rest, whether they end the partition or lie far back
    by_time = sorted(everything, key=lambda line: json.loads(line)["at"])
    assert last("--last", "20") == by_time[-20:]
    assert len(looked_at) < 300
    of_group = [line for line in by_time if json.loads(line)["group"] == "BE"]
    assert last("--last", "60", "--group", "BE") == of_group[-60:]
    assert len(looked_at) < 1000
    # and where there are not as many, all of them
    assert last("--last", "5", "--group", "DE") == [line for line in by_time if json.loads(line)["group"] == "DE"]
    assert last("--last", "0") == []
    assert not looked_at


def test_releases_come_as_they_are_published_until_it_is_stopped(shop: Shop) -> None:
    shop.open()
    shop.publish(release("basket", 1, 34.5, 1.3))
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as output:
        process = nursery.start("tail", shop.config, "--last", "0", output=output, errors=errors)

        def printed() -> str:
            return os.pread(output.fileno(), 1 << 16, 0).decode()

        number = 1
        while not printed():  # nothing says when it has read what was there, which it does not print
            number += 1
            shop.publish(release("basket", number, 34.5, 1.3))
            assert number < 100
        expected = f"2026-03-{1 + number:02}  basket  34.5 ± 1.3 (33.2 to 35.8)  {10 * number} samples\n"
        wait_until(lambda: printed().endswith(expected), 30, printed)
        process.send_signal(signal.SIGTERM)
        process.wait(30 * PATIENCE)
        assert process.returncode == 0
        assert os.pread(errors.fileno(), 1 << 16, 0) == b""


def test_what_is_missing_is_said_in_a_line(shop: Shop) -> None:
    missing = shop.tail().exception
    assert isinstance(missing, KafkaError)
    assert f"no topic {shop.activations}, {shop.releases}, or no right to see it" in str(missing)
    assert "there is no metric 'sales'; name one of: basket" in " ".join(shop.tail("--metric", "sales").output.split())


def test_brokers_that_are_away_are_told_once_and_waited_for(shop: Shop) -> None:
    shop.config.write_text(CONFIG.format(brokers="127.0.0.1:1", app=shop.name))
    assert "127.0.0.1:1: no broker answers" in str(shop.tail("--once").exception)
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryFile() as output:
        process = nursery.start("tail", shop.config, output=output, errors=errors)

        def said() -> str:
            return os.pread(errors.fileno(), 1 << 16, 0).decode()

        wait_until(lambda: said().endswith("\n") or process.poll() is not None, 30, said)
        process.send_signal(signal.SIGINT)
        process.wait(30 * PATIENCE)
        assert (process.returncode, said().count("\n")) == (0, 1)
        assert said().endswith("this goes on when one does\n")


def test_a_reader_that_has_gone_ends_it(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.open()
    shop.publish(release("basket", 1, 34.5, 1.3))

    def gone(line: bytes) -> None:
        raise tail.ReaderGone

    monkeypatch.setattr(tail, "_write", gone)
    assert isinstance(shop.tail("--once").exception, BrokenPipeError)
