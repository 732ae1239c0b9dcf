"""Records that were gone before they were read: workers and `check` refuse alike, and an operator lets them go on."""

import asyncio
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.records_to_delete import RecordsToDelete
from typer.testing import CliRunner

from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.session import load_config
from shoal.agents.cli.main import app
from shoal.agents.inspection.states import read_states
from shoal.agents.kafka.settings import settings_of
from shoal.models.times import iso
from tests.support.audit import replay
from tests.support.backends import mostly
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.people import visits
from tests.support.workers import Worker, tails, wait_until

PRESENT: dict[str, Any] = {"relation": "add-remove", "every": "6h", "start": "2001-09-09", "end": "2001-09-16"}


def cut(kafka: Kafka, topic: str, keep: int = 0) -> None:
    """Delete the records of two partitions, as retention would, but for the last few of each."""

    async def delete() -> None:
        client = AIOKafkaAdminClient(bootstrap_servers=kafka.bootstrap)
        await client.start()
        try:
            last = {one.partition: one.offset for one in await asyncio.to_thread(kafka.read_committed, topic)}
            before = {TopicPartition(topic, p): RecordsToDelete(before_offset=at + 1 - keep) for p, at in last.items()}
            await client.delete_records(before)
        finally:
            await client.close()

    asyncio.run(delete())


def command(*arguments: str | Path) -> tuple[int, str]:
    """Status and last words of a command, or its output."""
    result = CliRunner().invoke(app, list(map(str, arguments)))
    return (result.exit_code, result.stdout) if result.exception is None else (1, str(result.exception))


def accept(shoals: Deployment, *arguments: str) -> dict[str, Any]:
    status, said = command("accept-loss", shoals.config, shoals.topic(), "--by", "operator", *arguments, "--json")
    assert status == 0, said
    return dict(orjson.loads(said))


def refusal(worker: Worker) -> str:
    """The sentence with which a worker ends."""
    assert worker.exit_status() == 1, worker.text[-3000:]
    return worker.last_word.removeprefix("shoal: ")


def without_partition(text: str) -> str:
    """A refusal of one of several partitions, without which of them it is."""
    return re.sub(r"\[\d\]|\d+ to \d+", "", text)


def all_read(shoals: Deployment) -> None:
    """Wait until workers have read all that is in the topic, and stop them."""
    settings = settings_of(load_config(shoals.config))

    def done() -> bool:
        states = read_states(settings, {shoals.topic(): 2})
        return all(state.mark.get("offset") == state.bounds[1] for state in states)

    wait_until(done, 90, lambda: tails(shoals.workers), every=0.5)
    shoals.stop_all()


def settled(shoals: Deployment, events: Iterable[bytes], *, until_end: bool = True) -> None:
    """What workers have released is what a file run over these events releases."""
    shoals.oracle.forget()
    shoals.oracle.run(events, until_end=until_end)
    expected = shoals.oracle.releases()
    shoals.wait_releases(len(expected))
    assert shoals.releases() == expected


@mostly("kernel")
def test_behind_an_accepted_loss_the_stream_goes_on_with_the_same_noise(
    kafka: Kafka, tmp_path: Path, backend: str
) -> None:
    with Deployment(kafka, tmp_path, {"group": "city"}, sources={"events": 2}, partitions=2) as shoals:
        events = visits(4_000)
        shoals.worker()
        shoals.produce(events[:1_000])
        all_read(shoals)
        # when records are gone before anybody read them
        shoals.produce(events[1_000:2_000])
        cut(kafka, shoals.topic())
        shoals.produce(events[2_000:3_000])
        # then a worker and check refuse with one sentence, which has the command
        said = refusal(shoals.worker())
        assert "are gone" in said
        assert f"`shoal accept-loss {shoals.config} {shoals.topic()} --by NAME`" in said
        status, checked = command("check", shoals.config)
        assert status == 1
        assert without_partition(checked) == without_partition(said)
        # and an operator must say so where nobody can be asked
        assert "add --yes" in command("accept-loss", shoals.config, shoals.topic(), "--by", "operator")[1]
        losses = accept(shoals, "--yes")["losses"]
        assert [loss["partition"] for loss in losses] == [0, 1]
        assert sum(loss["next"] - loss["first"] for loss in losses) >= 1_000
        assert command("check", shoals.config)[0] == 0
        # when the next worker goes on, and the topic is then made anew
        shoals.worker()
        all_read(shoals)
        shoals.make_anew(shoals.topic())
        shoals.produce(events[3_000:], end=True)
        assert "was made anew" in refusal(shoals.worker())
        assert "was made anew" in command("check", shoals.config)[1]
        again = accept(shoals, "--yes")["losses"]
        assert [loss["next"] for loss in again] == [0, 0]
        shoals.worker()
        # then releases are those of the records that were read
        settled(shoals, [*events[:1_000], *events[2_000:]])
        shoals.stop_all()
        # and an audit makes all again that the topics still have, and says what it cannot
        told = replay(shoals.config)
        assert told.ok
        assert all(any(f"[{p}]" in n and "not recomputed" in n for n in told.fields["notes"]) for p in range(2))
        # and there is nothing more to accept, and a restored ledger is found out
        assert "there is no loss" in command("accept-loss", shoals.config, shoals.topic(), "--by", "x", "--yes")[1]
        with Ledger.open(f"sqlite:///{tmp_path}/shoal.db") as ledger, ledger.database.write() as connection:
            connection.exec_driver_sql("DELETE FROM turn")
        assert "restore the newer log" in refusal(shoals.worker())
        assert "restore the newer log" in command("check", shoals.config)[1]


def with_beats(events: list[bytes]) -> list[bytes]:
    """A beat after every 100 events, half an hour after the last of them."""
    found = []
    for number, raw in enumerate(events, 1):
        found.append(raw)
        if number % 100 == 0:
            found.append(orjson.dumps({"shoal-beat": iso((orjson.loads(raw)["at"] + 1_800) * 10**6)}))
    return found


def places_in_ledger(folder: Path) -> list[dict[str, Any]]:
    """Where losses end, as the ledger has it."""
    with Ledger.open(f"sqlite:///{folder}/shoal.db") as ledger, ledger.database.read() as connection:
        return [orjson.loads(place) for (place,) in connection.exec_driver_sql("SELECT place FROM turn")]


def beats(lines: list[bytes]) -> list[bytes]:
    return [line for line in lines if b"shoal-beat" in line]


@mostly("kernel")
def test_where_presence_is_protected_records_count_from_a_beat_that_was_still_to_come(
    kafka: Kafka, tmp_path: Path, backend: str
) -> None:
    with Deployment(kafka, tmp_path, PRESENT, sources={"events": 2}, partitions=2) as shoals:
        lines = with_beats(visits(4_000))
        read, lost, left, behind = lines[:1_010], lines[1_010:2_020], lines[2_020:3_030], lines[3_030:]
        shoals.worker()
        shoals.produce(read)
        all_read(shoals)
        # when records are gone before anybody read them, and others follow
        shoals.produce(lost)
        cut(kafka, shoals.topic(), keep=5)
        shoals.produce(left)
        # then nothing that is said or kept tells how many
        said = refusal(shoals.worker())
        assert "records that were not read are gone" in said
        assert "offset" not in said
        losses = accept(shoals, "--yes")["losses"]
        assert all(loss.keys() == {"id", "partition", "at", "beat"} for loss in losses)
        assert {frozenset(place) for place in places_in_ledger(tmp_path)} == {frozenset(("mark", "topic_id", "sealed"))}
        # when the next worker goes on
        shoals.worker()
        shoals.produce(behind)
        # then no record counts that was there before the next beat came
        first = lines.index(beats(behind)[0])
        settled(shoals, [*read, *lines[first:]], until_end=False)
        shoals.stop_all()
        assert replay(shoals.config).ok
