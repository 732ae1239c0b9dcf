"""The guides that need a Kafka: kafka.md, audit.md, dead-letters.md, deploy-and-upgrade.md, lose-a-key.md,
backup-and-restore.md, scale-out.md and presence.md are typed as they stand, and print what they say."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kafka import Kafka
from tests.support.typed import Typist, blocks_of, printed
from tests.support.workers import wait_until

pytestmark = pytest.mark.slow

BAD = """\
{"customer": 1, "at": "1997-01-01", "amount": "11.77"}
{"customer": 2, "at": "01/02/1997", "amount": 3.5}
{"customer": 3, "at": "02/02/1997", "amount": 4.5}
{"customer": 4, "amount": 4.5}
{"customer": 5, "at": "1997-01-02", "amount": 9.99}
"""
LATER = """\
{"customer": 1, "at": "1997-01-11", "amount": 11.77}
{"customer": 1, "at": "1997-01-12", "amount": 11.77}
"""


@pytest.fixture
def typist(kafka: Kafka, tmp_path: Path) -> Iterator[Typist]:
    with Typist(kafka, tmp_path) as one:
        yield one


@pytest.mark.long
def test_a_deployment_lives_as_the_guides_say(typist: Typist) -> None:
    # given the first guide, typed by somebody who waits for the worker
    said = typist.read("kafka.md", 0, waits={"shoal tail": "2,107 samples", "shoal audit verify": "9 releases"})
    assert {
        "2107 events to topic purchases, and the end",
        "1997-01-07  basket  nothing known yet  0 samples",
        "the audit log is in order: 9 releases",
        "9 of 9 releases and 1 activations are confirmed bit for bit from events, contributions and key",
    } <= printed("kafka.md", said)
    # then what was published can be audited, and the label compared
    said = typist.read("audit.md", 0, 1, 2, 3)
    assert {
        "9 of 9 releases and 1 activations are confirmed bit for bit from contributions and key",
        "basket version 1, purchases[7]:",
        "1 sample",
    } <= printed("audit.md", said)
    said = typist.read("lose-a-key.md", 0, 1, 2)
    assert "it fits this audit log" in said
    assert {
        "charged  epsilon 1 by shoal: basket version 1",
        "9 of 9 releases and 1 activations are confirmed bit for bit from contributions and key",
    } <= printed("lose-a-key.md", said)
    # and events that were refused are found, repaired and sent again
    (typist.folder / "bad.jsonl").write_text(BAD)
    typist.run("shoal produce live/shoal.toml --input bad.jsonl")
    said = typist.read("dead-letters.md", 0, waits={"shoal dead-letters": "no-time"})
    said += typist.read("dead-letters.md", 1, 2, 3) + (typist.folder / "live/refused.jsonl").read_text()
    assert printed("dead-letters.md", said) == {
        line for block in blocks_of("dead-letters.md", "text") for line in block.splitlines()
    }
    # and a new version ends the worker that lacks it
    said = typist.read("deploy-and-upgrade.md", 0, 1, 2, 3)
    old = typist.workers["live/shoal.toml"]
    assert old.exit_status() == 1
    said += old.text + typist.run("shoal worker live/shoal.toml", status=1)
    assert {
        "1 metric would be registered",
        'shoal: metric "basket" version 1 is retired and cannot return; raise its version',
        "charged  epsilon 1 by shoal: basket version 2",
    } <= {line.removeprefix("ok").strip() for line in printed("deploy-and-upgrade.md", said)}
    assert any("version 2 is active in the ledger and missing here" in line for line in said.splitlines())
    # and is retired by the file that has it, and by no older one
    refused = typist.run("shoal budget live/shoal.toml --retire basket", status=1)
    assert 'it has metric "basket" version 1, and version 2 is the active one' in refused
    assert typist.read("deploy-and-upgrade.md", 4).startswith("retired  basket version 2")
    assert typist.workers["live/next.toml"].exit_status() == 1
    # and the former parameters come back, by a version of its own
    typist.read("deploy-and-upgrade.md", 5)
    assert "charged  epsilon 1 by shoal: basket version 3\n" in typist.run("shoal budget live/back.toml")
    # and what an upgrade takes, after all workers were stopped, is done in a moment
    typist.workers["live/back.toml"].stop()
    assert "schema up to date" in typist.read("deploy-and-upgrade.md", 6, 7)
    # and after the key is lost, a new one and a new version go on
    typist.workers["live/back.toml"].stop()
    live = typist.folder / "live"
    (live / "shoal.key").unlink()
    assert "shoal.key does not exist" in typist.run("shoal check live/back.toml", status=1)
    typist.read("lose-a-key.md", 3)
    changed = (live / "back.toml").read_text().replace('"shoal.key"', '"shoal-2.key"')
    (live / "shoal.toml").write_text(changed.replace("version = 3", "version = 4"))
    said = typist.read("lose-a-key.md", 4, 5, 6)
    assert {
        "budget   epsilon 4 per person, for ever",
        "charged  epsilon 1 by shoal: basket version 1 (retired)",
    } <= printed("lose-a-key.md", said)
    assert "charged  epsilon 1 by shoal: basket version 4\n" in said
    assert "the audit log is in order" in said


@pytest.mark.long
def test_a_second_worker_takes_its_share_and_then_all(typist: Typist) -> None:
    # given a worker with all partitions
    said = typist.read("scale-out.md", 0, 1, 2, 3)
    one = typist.workers["one"]
    assert one.owned == 16
    # when another comes, then each has half
    typist.read("scale-out.md", 4)
    two = typist.workers["two"]
    one.wait(lambda: one.owned == 8)
    assert two.owned == 8
    # and when the first is killed, the second has all, and nothing is lost, doubled or drawn again
    produce, kill = blocks_of("scale-out.md", "sh")[5].splitlines()
    assert kill == "kill -9 PID"
    said += typist.run(produce)
    one.kill()
    two.wait_owns(16)
    said += typist.read("scale-out.md", 6, waits={"shoal tail": "2,107 samples", "shoal audit verify": "9 releases"})
    assert {
        "shoal.release.changelog: 8 partitions, made",
        "the audit log is in order: 9 releases",
        "9 of 9 releases and 1 activations are confirmed bit for bit from events, contributions and key",
    } <= printed("scale-out.md", said)


def test_presence_is_hidden_step_by_step(typist: Typist) -> None:
    # given the configuration of the page
    (config,) = blocks_of("presence.md", "toml")
    typist.save("live/presence.toml", config)
    # when it is followed, then the steps that beats have closed are released, and no other
    said = typist.read("presence.md", 0, 1, 2, waits={"shoal tail": "1997-01-04"})
    assert [line[:10] for line in said.splitlines() if line.startswith("1997")] == [
        "1997-01-02",
        "1997-01-03",
        "1997-01-04",
    ]


def test_a_lost_audit_log_comes_back_from_its_copy(typist: Typist) -> None:
    # given a worker that has released, and a copy of its log that is made and checked beside it
    typist.read("kafka.md", 0, waits={"shoal tail": "2,107 samples", "shoal audit verify": "9 releases"})
    said = typist.read("backup-and-restore.md", 0, 1, 2)
    # when it releases more, is killed, and its log is damaged
    (typist.folder / "later.jsonl").write_text(LATER)
    typist.run("shoal produce live/shoal.toml --input later.jsonl --end")
    verify = "shoal audit verify live/shoal.toml"
    wait_until(lambda: "order: 11 releases" in typist.run(verify), 20, lambda: typist.run(verify), every=0.5)
    typist.workers["live/shoal.toml"].kill()
    live = typist.folder / "live"
    (live / "shoal.db").write_bytes(os.urandom(3000))
    # then the copy is restored, and workers bring it up to the topics
    said += typist.read("backup-and-restore.md", 3)
    assert "the log is 2 releases behind the topic" in typist.run(verify)
    said += typist.read("backup-and-restore.md", 4, waits={"shoal audit verify": "11 releases"})
    assert "it lacks" not in said
    assert printed("backup-and-restore.md", said) == {
        "backup/shoal.db: 9 releases, in order",
        "workers read shoal.releases again from its beginning",
        "workers read shoal.activations again from its beginning",
        "the audit log is in order: 11 releases",
    }
