"""Explains the errors of Kafka's client to an operator, each in one sentence with a remedy.

`explain` reads an error that came while a client worked: a missing right, a wrong clock, a changed password; None
where the error's own name must do. `why_not` finds out why no broker can be used: away, TLS, certificate, password, or
a protocol that does not match. aiokafka tries each broker and drops what it was told, so this connects once more, with
aiokafka's own connection, and listens. Nothing here can fail: what it cannot name it calls by its type. No sentence
holds a value, a user of the events, or a password.
"""

import asyncio
import contextlib
import re
import ssl
import time
from collections.abc import Mapping
from typing import Any

from aiokafka import errors
from aiokafka.conn import create_conn
from aiokafka.errors import KafkaError as ClientError
from aiokafka.protocol.metadata import MetadataRequest

from shoal.agents.kafka.settings import KafkaSettings
from shoal.models.errors import FailStop, KafkaError

LIMIT_MS = 5_000
# What the other side has against our certificate, as OpenSSL writes it: SSLV3_ALERT_CERTIFICATE_UNKNOWN, or in words.
CERTIFICATE_ALERT = re.compile(r"alert[ _]((?:\w+[ _])?certificate(?:[ _]\w+)?|unknown[ _]ca)\b", re.IGNORECASE)


def explain(error: BaseException) -> str | None:
    """What a client's error means to the operator."""
    match error:
        case errors.GroupAuthorizationFailedError():
            return f"Kafka denies Read on group {_names(error)}; grant it with kafka-acls"
        case errors.TopicAuthorizationFailedError():
            return f"Kafka denies Read or Write on topic {_names(error)}; `shoal check` says which, grant it"
        case errors.TransactionalIdAuthorizationFailed():
            return f"Kafka denies Write on transactional id {_names(error)}; grant it with kafka-acls"
        case errors.ClusterAuthorizationFailedError():
            return "Kafka denies an operation on the cluster; `shoal check` says what a worker needs"
        case errors.SaslAuthenticationFailed():
            return "Kafka refuses user or password; correct [kafka] sasl_username or the content of sasl_password_file"
        case errors.InvalidTimestampError():
            return (
                f"this host's clock is ahead of the broker's by more than an hour, or by more than the topic's "
                f"message.timestamp.after.max.ms: it shows {_now()}; set it right, and start the worker again; nothing "
                "is lost"
            )
        case errors.UnsupportedCodecError():
            return (
                f"a batch cannot be unpacked: {_names(error)}; `pip install cramjam` brings the codecs snappy, lz4 and "
                "zstd, and is installed with shoal; nothing is lost"
            )
        case errors.IllegalOperation():
            return "the transaction was refused; `shoal check` says which rights are missing"
    return None


def refusal_of(producer: Any, error: errors.IllegalOperation) -> Exception:
    """Why a transaction cannot be written to any more: the broker's refusal, which aiokafka keeps to itself.

    It notes the refusal with the transaction, and says of everything after it that there is no transaction.
    """
    waiter = producer._txn_manager._transaction_waiter
    refusal = waiter.exception() if waiter.done() and not waiter.cancelled() else None
    reason: Exception = refusal if isinstance(refusal, ClientError) else error
    return reason


def _names(error: ClientError) -> str:
    """The resources that the client named, if it did."""
    names = error.args[0] if error.args else ""
    return ", ".join(sorted(map(str, names))) if isinstance(names, set | frozenset | list | tuple) else str(names)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class NotConnected(KafkaError):
    """No broker can be used. `away`: none of them can be reached, which may pass; else a setting is wrong."""

    def __init__(self, message: str, *, away: bool) -> None:
        super().__init__(message)
        self.away = away


async def why_not(settings: KafkaSettings) -> NotConnected:
    """What keeps a client from all configured brokers; of several reasons the first that is not absence."""
    reasons = await asyncio.gather(*(_reason(settings, *address) for address in settings.addresses()))
    reason = next((reason for reason in reasons if reason is not None), None)
    if reason is None:
        text = f"{settings.brokers}: no broker answers; is Kafka running, and are the settings right?"
        return NotConnected(text, away=True)
    return NotConnected(f"{settings.brokers}: {reason}", away=False)


async def _reason(settings: KafkaSettings, host: str, port: int) -> str | None:
    """Why this broker refuses us; None if it is away."""
    protocol = settings.client.get("security_protocol", "PLAINTEXT")
    try:
        await _converse(settings, host, port)
    except ssl.SSLCertVerificationError as error:
        return _certificate(settings, error)
    except errors.SaslAuthenticationFailed:
        user = settings.client.get("sasl_plain_username")
        return (
            f"the broker refuses user {user}: wrong password, or no such user; correct [kafka] sasl_username or the "
            "content of sasl_password_file"
        )
    except (errors.UnsupportedSaslMechanismError, errors.IllegalSaslStateError) as error:
        return _sasl(settings, error)
    except (OSError, ClientError) as error:
        if (refusal := _client_certificate(error)) is not None:
            return refusal
        if isinstance(error, OSError) and not isinstance(error, ConnectionResetError | ssl.SSLError):
            return None  # refused, no such name, no answer in time
        return await _mismatch(str(protocol), host, port)
    except Exception as error:
        return f"the client fails with {type(error).__name__}; are the [kafka] settings right?"
    return "the broker closes the connection; look at its log"


async def _converse(settings: KafkaSettings, host: str, port: int) -> None:
    """Connect as any client would, and ask something; raises what keeps it from an answer."""
    client: Mapping[str, Any] = settings.client
    connection = await create_conn(host, port, client_id=settings.app, request_timeout_ms=LIMIT_MS, **client)
    try:
        await connection.send(MetadataRequest([]))
    finally:
        connection.close()


def _certificate(settings: KafkaSettings, error: ssl.SSLCertVerificationError) -> str:
    reason = error.verify_message or "it cannot be verified"
    if error.verify_code in (62, 64):  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
        return f"the broker's certificate is for another name ({reason}); connect by a name that stands in it"
    if settings.ca_file:
        return f"the broker's certificate is not signed by the CA in [kafka] ssl_cafile ({reason}); name its CA there"
    return f"the broker's certificate is not signed by a CA of this system ({reason}); set [kafka] ssl_cafile"


def _sasl(settings: KafkaSettings, error: ClientError) -> str:
    if isinstance(error, errors.UnsupportedSaslMechanismError):
        mechanism = settings.client.get("sasl_mechanism")
        return f"the broker does not offer {mechanism}; correct [kafka] sasl_mechanism"
    return "the broker asks for no password there; correct [kafka] security_protocol, or the port"


def _client_certificate(error: BaseException | None) -> str | None:
    """The broker's objection to our certificate, or to the lack of one; None if TLS ended for another reason."""
    while error is not None:
        if isinstance(error, ssl.SSLError) and (alert := CERTIFICATE_ALERT.search(str(error))):
            return _refused_certificate(alert[1].lower().replace("_", " "))
        error = error.__cause__ or error.__context__
    return None


def _refused_certificate(alert: str) -> str:
    if alert == "certificate required":
        return "the broker asks for a client certificate; set [kafka] ssl_certfile and ssl_keyfile"
    return (
        f"the broker refuses the client certificate in [kafka] ssl_certfile ({alert}); name one that is valid "
        "and signed by a CA that the broker trusts"
    )


async def _mismatch(protocol: str, host: str, port: int) -> str | None:
    """Whether the two sides speak different protocols; None if the broker is away."""
    tls = await _speaks_tls(host, port)
    if tls is None:
        return None
    if tls and not protocol.endswith("SSL"):
        return f"the broker speaks TLS there; set [kafka] security_protocol to SSL or SASL_SSL (it is {protocol})"
    if not tls and protocol.endswith("SSL"):
        return f"the broker does not speak TLS there; correct [kafka] security_protocol (it is {protocol}), or the port"
    if not protocol.startswith("SASL"):
        return f"the broker ends the connection; it may ask for a password: [kafka] security_protocol is {protocol}"
    return "the broker ends the connection; look at its log"


async def _speaks_tls(host: str, port: int) -> bool | None:
    """Whether a TLS handshake succeeds, whatever the certificate; None if nothing answers at all."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # only asks what is spoken; sends nothing
    for encrypted in (context, None):
        with contextlib.suppress(OSError, TimeoutError):
            connecting = asyncio.open_connection(host, port, ssl=encrypted)
            _, writer = await asyncio.wait_for(connecting, LIMIT_MS / 1000)
            writer.close()
            return encrypted is not None
    return None


def lost_records(error: errors.OffsetOutOfRangeError) -> FailStop:
    """Why a running worker cannot read on."""
    lost = ", ".join(f"{tp.topic}[{tp.partition}] at offset {offset}" for tp, offset in error.args[0].items())
    return FailStop(
        f"{lost}: the records to read next are not in the topic; retention deleted them, the topic was made anew, or "
        f"an unclean leader election lost them: run `shoal check`, which names what is lost, and the way on"
    )
