"""Registrations and releases to fill a log with."""

from dataclasses import asdict, replace
from fractions import Fraction
from typing import Any

import orjson

from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.requests import Agreement, Registration, Request
from shoal.models.config.durations import parse_duration
from shoal.models.config.unit import parse_unit
from shoal.models.digests import parameters_digest
from shoal.models.records import activation_bytes, release_id

APP = "shoal"


def parameters(**keys: Any) -> dict[str, Any]:
    """Registered parameters of a metric with these keys, as far as the guards of the ledger read them."""
    usual = {"topic": "purchases", "user": "customer", "value": "amount", "time": "at", "unit": "user", "every": "1d"}
    said = usual | keys
    source = {key: said[key] for key in ("topic", "user", "time")}
    unit, most = parse_unit(said["unit"]), said.get("max_events_per_user")
    per: dict[str, Any] = {"kind": "One"}
    if "group" in said:
        per = {"kind": "Keys", "place": {"kind": "Field", "name": said["group"]}}
    if "cell" in said:
        cell = said["cell"]
        per = {"kind": "Keys", "place": {"kind": "Hexagons", "latitude": cell["lat"], "longitude": cell["lon"]}}
    values = {"fields": {"names": [said["value"]], "predicate": None}, "ranges": [said.get("range", [0, 1])]}
    relation = said.get("relation", "values")
    hides = {"kind": relation, "unit": asdict(unit), "limits": {"of_a_user": most} if unit.is_event else {"keys": 1}}
    parts = {
        "source": source | {"late": said.get("late", "fold"), "epoch": said.get("epoch", 0)},
        "of": {"kind": said.get("statistic", "mean"), "values": values},
        "per": per,
        "at": {"kind": "Ticks", "length": {"microseconds": parse_duration(said["every"])}},
        "hides": hides | {"end": said.get("end")},
        "mechanism": said.get("mechanism"),
    }
    return _stated(parts)


def _stated(parts: dict[str, Any]) -> dict[str, Any]:
    """The parts without what is None."""
    inner = {key: _stated(value) if isinstance(value, dict) else value for key, value in parts.items()}
    return {key: value for key, value in inner.items() if value is not None}


def version(metric: str = "basket", number: int = 1, epsilon: str = "1", **keys: Any) -> Registration:
    text = orjson.dumps(parameters(**keys), option=orjson.OPT_SORT_KEYS).decode()
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
