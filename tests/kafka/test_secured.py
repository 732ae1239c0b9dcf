"""A broker with TLS, passwords and rights: what is wrong is called by its name, and what is right is enough."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.agents.audit.session import load_config
from shoal.agents.kafka import transactions
from shoal.agents.kafka.client_errors import why_not
from shoal.agents.kafka.reachability import Reach
from shoal.agents.kafka.rights import find_rights
from shoal.agents.kafka.settings import BOUND, settings_of
from shoal.agents.kafka.topics import verify_topics
from shoal.agents.kafka.transactions import Trimmer, Writer
from shoal.models.errors import KafkaError
from shoal.stream.machine import LogSpan, Outbox, StagePartition
from tests.agents.worker.test_watch import set_config
from tests.support.acls import LITERAL, READ, TOPIC, Acl
from tests.support.deployment import Deployment
from tests.support.secured import Guarded, SecuredCluster, by_certificate, by_password
from tests.support.workers import shoal


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with SecuredCluster(tmp_path_factory.mktemp("kafka"), size=1) as broker:
        yield broker


@pytest.fixture
def guarded(secured: SecuredCluster, tmp_path: Path) -> Iterator[Guarded]:
    with Guarded(secured, tmp_path, sources={"events": 2}, partitions=2, **by_password(secured)) as shoals:
        secured.grant(shoals.acls.values())
        asyncio.run(verify_topics(shoals.settings(), [shoals.topic()]))
        yield shoals


CAUSES: dict[str, tuple[str, dict[str, Any], str]] = {
    "wrong password": ("password", {"sasl_password_file": "wrong.password"}, "the broker refuses user worker: wrong"),
    "unknown mechanism": ("password", {"sasl_mechanism": "SCRAM-SHA-256"}, "the broker does not offer SCRAM-SHA-256"),
    "another CA": ("password", {"ssl_cafile": "other.pem"}, "not signed by the CA in [kafka] ssl_cafile"),
    "no CA": ("password", {"ssl_cafile": None}, "not signed by a CA of this system"),
    "no client certificate": (
        "certificate", {"ssl_certfile": None, "ssl_keyfile": None}, "the broker asks for a client certificate"),
    "certificate of another CA": (
        "certificate", {"ssl_certfile": "foreign.pem", "ssl_keyfile": "foreign.key"},
        "the broker refuses the client certificate in [kafka] ssl_certfile"),
    "certificate of yesterday": (
        "certificate", {"ssl_certfile": "expired.pem", "ssl_keyfile": "expired.key"},
        "the broker refuses the client certificate in [kafka] ssl_certfile"),
    "plain to TLS": ("certificate", {"security_protocol": None}, "the broker speaks TLS there"),
    "TLS to plain": ("plain", {}, "the broker does not speak TLS there"),
    "no password": ("password", {"security_protocol": "SSL"}, "it may ask for a password"),
    "nobody there": ("password", {"brokers": "localhost:1"}, "no broker answers; is Kafka running"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "changes", "sentence"), CAUSES.values(), ids=CAUSES)
def test_what_keeps_a_client_from_the_brokers_has_a_name(
    secured: SecuredCluster, tmp_path: Path, kind: str, changes: dict[str, Any], sentence: str
) -> None:
    named = {
        key: str(secured.file(value)) if key.endswith("file") and value else value for key, value in changes.items()
    }
    if kind == "plain":
        named["brokers"] = secured.bootstrap
    section = (by_password if kind == "password" else by_certificate)(secured, **named)
    shoals = Deployment(secured, tmp_path, **section)
    error = asyncio.run(why_not(settings_of(load_config(shoals.config))))
    assert sentence in str(error)
    assert error.away == (kind == "password" and "brokers" in changes)
    assert "correct horse" not in str(error)
    # and a command says it, after all that needs no broker
    if {"sasl_password_file", "ssl_certfile"} & changes.keys() or kind == "plain":
        refused = shoal("check", shoals.config)
        assert refused.returncode == 1
        assert sentence in refused.stderr


def test_the_documented_rights_are_enough_and_each_of_them_is_missed(guarded: Guarded) -> None:
    def missing() -> list[str]:
        return asyncio.run(find_rights(guarded.settings(), [guarded.topic()])).missing

    # given the rights that the page on operations lists: nothing is missing
    assert missing() == []
    check = shoal("check", guarded.config)
    assert check.returncode == 0, check.stderr
    assert "Kafka denies" not in check.stdout + check.stderr
    # when each is taken away alone, then it is named
    app, source = guarded.app, guarded.topic()
    named = {
        "source Read": f"Read on topic {source}",
        "APP.* Read": f"Read on topics {app}.*",
        "APP.* Write": f"Write on topics {app}.*",
        "transactional id Write": f"Write on transactional ids {app}.*",
        "group Read": f"Read on group {app}",
    }
    for name, text in named.items():
        guarded.kafka.revoke([guarded.acls[name]])
        assert missing() == [text]
        guarded.kafka.grant([guarded.acls[name]])

    # and where only the look at retention is denied, it is said that it could not be had
    for name, text in {"source DescribeConfigs": f"topic {source}", "APP.* DescribeConfigs": f"topics {app}.*"}.items():
        guarded.kafka.revoke([guarded.acls[name]])
        verified = asyncio.run(verify_topics(guarded.settings(), [source], create=False))
        assert [warning for warning in verified.warnings if "could not ask" in warning] == [
            f"could not ask for retention and durability: DescribeConfigs on {text} is denied; grant it with kafka-acls"
        ]
        guarded.kafka.grant([guarded.acls[name]])


def test_without_the_right_to_delete_a_log_grows_and_a_worker_says_so_once(
    guarded: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[dict[str, Any]] = []
    monkeypatch.setattr(transactions, "LEAST_BYTES", 1)
    monkeypatch.setattr(transactions.log, "warning", lambda event, **fields: said.append({"event": event} | fields))
    settings = guarded.settings()
    partition = StagePartition(BOUND, guarded.topic(), 0)
    changelog = settings.changelog(BOUND, guarded.topic())

    async def take_over() -> None:
        """Where presence is protected: before anything came."""
        writer = Writer(settings, partition, Reach(settings))
        await writer.fence()
        trimmer = Trimmer(writer, hides_presence=True)
        trimmer.restored([])
        assert trimmer._task is not None
        await trimmer._task
        await writer.stop()

    async def write(first: int) -> None:
        """Some transactions, each of which needs itself alone; all that is deleted in between is deleted at once."""
        writer = Writer(settings, partition, Reach(settings))
        await writer.fence()
        trimmer = Trimmer(writer)
        for number in range(first, first + 5):
            outbox = Outbox(0, [(b"%d" % number, b"x" * 1_000)], log=LogSpan(number, number, cost=1_000))
            await writer.write(outbox)
            trimmer.committed(outbox)
            if trimmer._task is not None:
                await trimmer._task
        await writer.stop()

    def left() -> list[bytes | None]:
        return [record.key for record in guarded.kafka.read_committed(changelog)]

    # when the right is missing, then all goes on, nothing is deleted, and it is said
    guarded.kafka.revoke([guarded.acls["APP.bound.* Delete"]])
    asyncio.run(write(1))
    assert left() == [b"1", b"2", b"3", b"4", b"5"]
    assert [(one["event"], one["topic"]) for one in said] == [("not_trimmed", changelog)]
    assert "Kafka denies Delete on it: grant it with kafka-acls" in said[0]["reason"]
    assert asyncio.run(find_rights(settings, [guarded.topic()])).advised == [f"Delete on topic {changelog}"]
    # and where presence is protected, whatever came; with the right nothing is deleted by that
    asyncio.run(take_over())
    assert said.pop() == said[0]
    guarded.kafka.grant([guarded.acls["APP.bound.* Delete"]])
    asyncio.run(take_over())
    assert (len(left()), len(said)) == (5, 1)
    # where the topic is compacted, likewise
    set_config(guarded.kafka, changelog, "cleanup.policy", "compact")
    asyncio.run(write(6))
    assert len(left()) == 10
    assert "its cleanup.policy is not delete" in said[1]["reason"]
    # and with the right, and the right policy, what nobody needs goes
    set_config(guarded.kafka, changelog, "cleanup.policy", "delete")
    asyncio.run(write(11))
    assert left() == [b"14", b"15"]
    assert len(said) == 2


def test_check_names_a_missing_right_and_ends_with_1(guarded: Guarded) -> None:
    guarded.kafka.revoke([guarded.acls["group Read"]])
    check = shoal("check", guarded.config)
    assert check.returncode == 1
    assert "would be charged epsilon" in check.stdout
    assert f"Kafka denies what a worker needs: Read on group {guarded.app}; grant it" in check.stderr


def test_a_topic_that_is_denied_is_told_from_one_that_is_missing(guarded: Guarded) -> None:
    with pytest.raises(KafkaError, match="denies this principal access to topic nowhere"):
        asyncio.run(verify_topics(guarded.settings(), ["nowhere"]))
    guarded.kafka.grant([Acl(TOPIC, "nowhere", LITERAL, READ)])
    with pytest.raises(KafkaError, match="no topic nowhere; run `shoal topics`"):
        asyncio.run(verify_topics(guarded.settings(), ["nowhere"]))


def test_a_worker_without_the_right_to_its_group_ends_and_names_it(guarded: Guarded) -> None:
    guarded.kafka.revoke([guarded.acls["group Read"]])
    worker = guarded.worker()
    assert worker.exit_status() == 1
    assert f"Read on group {guarded.app}" in worker.last_word
