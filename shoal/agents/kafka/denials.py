"""What Kafka's refusals mean: the right that is missing, the clock that is wrong, the password that was changed.

In comes an error of the client; out comes a sentence with a remedy, or None where the error's own name must do. No
sentence holds a value, a user of the events, or a password.
"""

import time
from typing import Any

from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    IllegalOperation,
    InvalidTimestampError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)
from aiokafka.errors import KafkaError as ClientError


def explain(error: BaseException) -> str | None:
    """What a client's error means to the operator."""
    match error:
        case GroupAuthorizationFailedError():
            return f"Kafka denies Read on group {_names(error)}; grant it with kafka-acls"
        case TopicAuthorizationFailedError():
            return f"Kafka denies Read or Write on topic {_names(error)}; `shoal check` says which, grant it"
        case TransactionalIdAuthorizationFailed():
            return f"Kafka denies Write on transactional id {_names(error)}; grant it with kafka-acls"
        case ClusterAuthorizationFailedError():
            return "Kafka denies an operation on the cluster; `shoal check` says what a worker needs"
        case SaslAuthenticationFailed():
            return "Kafka refuses user or password; correct [kafka] sasl_username or the content of sasl_password_file"
        case InvalidTimestampError():
            return (
                f"this host's clock is ahead of the broker's by more than an hour, or by more than the topic's "
                f"message.timestamp.after.max.ms: it shows {_now()}; set it right, and start the worker again; nothing "
                "is lost"
            )
        case IllegalOperation():
            return "the transaction was refused; `shoal check` says which rights are missing"
    return None


def refusal_of(producer: Any, error: IllegalOperation) -> Exception:
    """Why a transaction cannot be written to any more: the broker's refusal, which aiokafka keeps to itself.

    It notes the refusal with the transaction, and says of everything after it that there is no transaction.
    """
    waiter = producer._txn_manager._transaction_waiter
    refusal = waiter.exception() if waiter.done() and not waiter.cancelled() else None
    found: Exception = refusal if isinstance(refusal, ClientError) else error
    return found


def _names(error: ClientError) -> str:
    """The resources that the client named, if it did."""
    names = error.args[0] if error.args else ""
    return ", ".join(sorted(map(str, names))) if isinstance(names, set | frozenset | list | tuple) else str(names)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
