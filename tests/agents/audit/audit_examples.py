"""Registrations and releases to fill a log with."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import orjson

from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.requests import Agreement, Registration, Request
from shoal.models.digests import parameters_digest
from shoal.models.records import activation_bytes, release_id

APP = "shoal"


def version(metric: str = "basket", number: int = 1, epsilon: str = "1", **parameters: object) -> Registration:
    said = {"topic": "purchases", "user": "customer", "value": "amount", "time": "at", **parameters}
    text = orjson.dumps(said, option=orjson.OPT_SORT_KEYS).decode()
    return Registration(
        APP, metric, number, parameters_digest(text), text, epsilon, "0", "user", "values", Fraction(epsilon), 0
    )


def register(ledger: Ledger, *versions: Registration, **terms: Any) -> Agreement:
    defaults: dict[str, Any] = {
        "app": APP,
        "budget_epsilon": Fraction(4),
        "budget_delta": Fraction(0),
        "key_fingerprint": "f00d",
    }
    said = {"file_run": "partitions" not in terms} | defaults | terms
    return ledger.register(Request(registrations=[replace(each, app=said["app"]) for each in versions], **said))


def release(
    seq: int, group: str | None = "NL", *, metric: str = "basket", number: int = 1, value: float = 1.5
) -> bytes:
    return orjson.dumps(
        {
            "metric": metric, "group": group, "seq": seq, "id": release_id(metric, number, group, seq),
            "at": "1997-01-02T00:00:00Z", "value": value, "version": number,
        }
    )  # fmt: skip


def amounts(*numbers: int) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, numbers))


def activation(level: int, prior: float = 20.0) -> bytes:
    return activation_bytes("basket", 1, "NL", level, 0, prior, 0.5, 100)
