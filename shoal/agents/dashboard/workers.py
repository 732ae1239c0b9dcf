"""What workers say of themselves at their [web] port: `/metrics` and `/readyz`, and nothing that they do not show.

Where presence is protected they show no numbers that tell how many events there are; then the page has none either. A
worker that is away, or is none, is told as such, and asked again.
"""

import asyncio
import math
import socket
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import orjson
from aiohttp import ClientError, ClientSession, ClientTimeout
from prometheus_client.parser import text_string_to_metric_families

from shoal.agents.worker_addresses import Place, places_of
from shoal.models.config.addresses import Address

LIMIT = ClientTimeout(total=3.0)
MOST_BYTES = 4 << 20
STAGES = {"bound": "events", "release": "messages"}
Samples = dict[str, list[tuple[dict[str, str], float]]]


async def ask(session: ClientSession, wanted: list[Address]) -> list[dict[str, Any]]:
    """What all workers say, in the order of their names."""
    each = await asyncio.gather(*(_resolved(address) for address in wanted))
    found = dict.fromkeys(worker for workers in each for worker in workers)
    return list(await asyncio.gather(*(_ask(session, *worker) for worker in found)))


async def _resolved(address: Address) -> list[Place]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(*address, type=socket.SOCK_STREAM)
    except OSError:
        found = []
    return places_of(address, found)


async def _ask(session: ClientSession, name: str, host: str, port: int) -> dict[str, Any]:
    base = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    try:
        metrics, report = await asyncio.gather(_get(session, f"{base}/metrics"), _get(session, f"{base}/readyz"))
        return {"name": name, "reached": True} | summary(metrics.decode(), orjson.loads(report))
    except (ClientError, OSError, TimeoutError) as error:
        why = "no answer in time" if isinstance(error, TimeoutError) else "it cannot be reached"
        return {"name": name, "reached": False, "why": why}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {"name": name, "reached": False, "why": "it is no worker, or one of another version"}


async def _get(session: ClientSession, url: str) -> bytes:
    async with session.get(url, timeout=LIMIT, allow_redirects=False) as answer:
        body = await answer.content.read(MOST_BYTES)
        if answer.status not in (200, 503):
            raise ValueError(answer.status)
        return body


def summary(metrics: str, report: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of one worker.

    Raises:
        ValueError, KeyError: this is not what a worker says.
    """
    samples = _samples(metrics)
    lags: dict[str, float] = defaultdict(float)
    for labels, value in samples["shoal_consumer_lag_records"]:
        if labels["stage"] in STAGES:
            lags[STAGES[labels["stage"]]] += value
    return {
        "ready": bool(report["ready"]),
        "reasons": list(_reasons(report)),
        "partitions": int(samples["shoal_owned_partitions"][0][1]),
        "discreet": not samples["shoal_events_total"],
        "events": _only(samples, "shoal_events_total"),
        "lag": {**lags, "audit": _only(samples, "shoal_audit_lag_records")},
        "late": _by(samples, "shoal_event_time_lag_seconds", "topic"),
        "times": _by(samples, "shoal_event_time_seconds", "metric"),
        "since": _by(samples, "shoal_seconds_since_tick", "metric"),
        "waits": [
            [each["metric"], each["topic"], each["partition"], each["since"], bool(each["stuck"])]
            for each in report["waiting_for"]
        ],
        "dead": [
            [of["metric"], of["reason"], count] for of, count in samples["shoal_dead_letters_total"] if count
        ],
    }  # fmt: skip


def _samples(metrics: str) -> Samples:
    found: Samples = defaultdict(list)
    for family in text_string_to_metric_families(metrics):
        for sample in family.samples:
            if math.isfinite(sample.value):
                found[sample.name].append((sample.labels, sample.value))
    return found


def _only(samples: Samples, name: str) -> float | None:
    return samples[name][0][1] if samples[name] else None


def _by(samples: Samples, name: str, label: str) -> dict[str, float]:
    return {labels[label]: value for labels, value in samples[name]}


def _reasons(report: dict[str, Any]) -> Iterator[str]:
    """What does not hold, and what somebody should look at."""
    yield from (str(each["text"]) for each in report["conditions"] if not each["ok"])
    yield from (f"alarm {kind}: {text}" for kind, text in report["alarms"].items())
    silent = [f"{each['topic']}[{each['partition']}]" for each in report["without_beats"]]
    if silent:
        yield f"{', '.join(silent)} had no beat yet, and no tick closes before: run `shoal beat`"
