"""What Kafka refuses is said in words with a remedy; only what nobody foresaw is called a bug."""

import asyncio
import errno
from types import SimpleNamespace

import pytest
from aiokafka import errors

from shoal.agents.kafka.client_errors import explain, refusal_of
from shoal.agents.kafka.fail_stop import describe

SENTENCES = {
    errors.GroupAuthorizationFailedError("app"): "Kafka denies Read on group app; grant it",
    errors.TopicAuthorizationFailedError({"b", "a"}): "Kafka denies Read or Write on topic a, b; `shoal check` says",
    errors.TopicAuthorizationFailedError("a"): "Kafka denies Read or Write on topic a;",
    errors.TransactionalIdAuthorizationFailed("app.release.0"): "denies Write on transactional id app.release.0",
    errors.ClusterAuthorizationFailedError(): "Kafka denies an operation on the cluster",
    errors.SaslAuthenticationFailed(): "Kafka refuses user or password",
    errors.InvalidTimestampError(): "this host's clock is ahead of the broker's by more than",
    errors.UnsupportedCodecError("lz4 not found"): "a batch cannot be unpacked: lz4 not found; `pip install",
    errors.IllegalOperation(): "the transaction was refused; `shoal check` says which rights are missing",
}


@pytest.mark.parametrize(("error", "sentence"), SENTENCES.items(), ids=lambda value: type(value).__name__)
def test_a_refusal_has_its_sentence(error: Exception, sentence: str) -> None:
    said = describe(error, "release of app.contributions[0] at offset 7")
    assert said.startswith("release of app.contributions[0] at offset 7: ")
    assert sentence in said
    assert "bug" not in said


def test_what_has_no_sentence_keeps_its_name() -> None:
    assert explain(errors.KafkaTimeoutError()) is None
    assert describe(errors.KafkaTimeoutError(), "here") == "here: Kafka refused: KafkaTimeoutError: KafkaTimeoutError"
    assert "unexpected KeyError at an unknown place; this is a bug" in describe(KeyError("secret"), "here")


def test_a_full_disk_is_no_bug() -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "out/releases")
    assert describe(full, "here").startswith("here: out/releases: No space left on device; make room")
    assert "this is a bug" in describe(OSError(errno.EBADF, "Bad file descriptor"), "here")


def test_the_refusal_of_a_transaction_is_found_behind_what_the_client_says() -> None:
    async def behind(outcome: BaseException | None) -> Exception:
        waiter = asyncio.get_running_loop().create_future()
        if outcome is not None:
            waiter.set_exception(outcome)
            waiter.exception()
        producer = SimpleNamespace(_txn_manager=SimpleNamespace(_transaction_waiter=waiter))
        return refusal_of(producer, errors.IllegalOperation("no transaction"))

    refusal = errors.TopicAuthorizationFailedError("a")
    assert asyncio.run(behind(refusal)) is refusal
    assert isinstance(asyncio.run(behind(None)), errors.IllegalOperation)
    assert isinstance(asyncio.run(behind(ValueError())), errors.IllegalOperation)
