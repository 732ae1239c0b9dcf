"""Asks running workers for their `/readyz`, and says together what no worker can say alone: what holds a tick up.

A worker names the source partitions that its open ticks wait for. Who owns these, and how far behind that worker is,
stands in the answer of another one. Workers are asked over HTTP, at addresses that a person gives.
"""

import http.client
import socket
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import orjson

from shoal.agents.worker_addresses import Place, addresses_of, places_of
from shoal.models.config.addresses import Address
from shoal.models.errors import ConfigError, ShoalError

LIMIT = 5.0  # seconds for an answer: a worker whose event loop stands still gives none
AT_ONCE = 32
PARTS = {"conditions", "alarms", "waiting_for", "without_beats", "partitions"}
OTHER_VERSION = "it is no worker, or one of an older version"


class NotWell(ShoalError):
    """Running workers are not as they should be."""


@dataclass(frozen=True)
class Answer:
    """What a worker said, or why there is no answer."""

    worker: str
    report: dict[str, Any] | None = None
    failure: str = ""

    @property
    def reasons(self) -> list[str]:
        """Why it is not ready; none if it is."""
        if self.report is None:
            return [self.failure]
        return [f"{one['name']}: {one['text']}" for one in self.report["conditions"] if not one["ok"]]

    @property
    def owned(self) -> dict[tuple[str, int], int | None]:
        """The source partitions that it owns; how far behind each is, unless it does not tell."""
        report = self.report or {"partitions": []}
        return {
            (one["topic"], one["partition"]): one.get("behind")
            for one in report["partitions"]
            if one["stage"] == "bound"
        }


def ask_workers(names: str) -> list[Answer]:
    """Ask all of them at once, by `HOST:PORT,HOST:PORT`.

    Raises:
        ConfigError: one of the names is none.
    """
    addresses = [place for address in addresses_of(names) for place in _places(address)]
    if not addresses:
        raise ConfigError("--workers: name them as HOST:PORT,HOST:PORT, with the port of [web]")
    with ThreadPoolExecutor(min(AT_ONCE, len(addresses))) as pool:
        return list(pool.map(_ask, dict.fromkeys(addresses)))


def _places(address: Address) -> list[Place]:
    try:
        return places_of(address, socket.getaddrinfo(*address, type=socket.SOCK_STREAM))
    except OSError:
        return places_of(address, [])


def _ask(address: Place) -> Answer:
    name, host, port = address
    connection = http.client.HTTPConnection(host, port, timeout=LIMIT)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        said = orjson.loads(answer.read())
        if not isinstance(said, dict) or not said.keys() >= PARTS:
            return Answer(name, failure=f"no answer to /readyz: {OTHER_VERSION}")
    except TimeoutError:
        return Answer(name, failure=f"no answer within {LIMIT:.0f} s: it is stopped, or its event loop stands still")
    except OSError as error:
        return Answer(name, failure=f"no answer ({error.strerror or type(error).__name__})")
    except (http.client.HTTPException, ValueError):
        return Answer(name, failure=f"no answer to /readyz: {OTHER_VERSION}")
    finally:
        connection.close()
    return Answer(name, said)


def diagnose(answers: Sequence[Answer]) -> dict[str, Any]:
    """What was found, for `--json`: `workers` and `waiting_for`."""
    workers = [
        {
            "worker": answer.worker,
            "ready": not answer.reasons,
            "reasons": answer.reasons,
            "alarms": {} if answer.report is None else answer.report["alarms"],
            "partitions": 0 if answer.report is None else len(answer.report["partitions"]),
        }
        for answer in answers
    ]
    return {"workers": workers, "waiting_for": [*_waiting(answers), *_without_beats(answers)]}


def _waiting(answers: Sequence[Answer]) -> Iterator[dict[str, Any]]:
    """What ticks wait for, once each, though several workers wait for it."""
    found: dict[tuple[str, str, int], dict[str, Any]] = {}
    for answer in answers:
        for one in [] if answer.report is None else answer.report["waiting_for"]:
            place = one["metric"], one["topic"], one["partition"]
            known = found.get(place)
            if known is None or one["since"] < known["since"]:
                found[place] = {**one, "stuck": one["stuck"] or (known is not None and known["stuck"])}
    for (_, topic, number), one in sorted(found.items()):
        yield one | _cause(answers, topic, number)


def _without_beats(answers: Sequence[Answer]) -> Iterator[dict[str, Any]]:
    reports = [answer.report for answer in answers if answer.report is not None]
    silent = {(one["topic"], one["partition"]) for report in reports for one in report["without_beats"]}
    for topic, number in sorted(silent):
        cause = "it had no beat yet, and no tick of its topic closes before: run `shoal beat`"
        yield {"metric": None, "topic": topic, "partition": number, "stuck": True, "owner": None, "cause": cause}


def _cause(answers: Sequence[Answer], topic: str, number: int) -> dict[str, Any]:
    """Who owns a partition that is waited for, and why it may hold others up."""
    owners = [answer for answer in answers if (topic, number) in answer.owned]
    silent = [answer.worker for answer in answers if answer.report is None]
    if not owners:
        asked = f"none of the workers that answered owns it, and {', '.join(silent)} did not answer"
        nobody = "none of the workers that were asked owns it: start one, or name all of them"
        return {"owner": None, "cause": asked if silent else nobody}
    owner, behind = owners[0], owners[0].owned[topic, number]
    if owner.reasons:
        cause = f"{owner.worker} owns it and is not ready"
    elif behind:
        cause = f"{owner.worker} owns it and is {behind} records behind there: wait, or start more workers"
    elif behind is None:
        cause = f"{owner.worker} owns it: run `shoal beat`; if it runs, see how far behind the consumer group is"
    else:
        cause = f"{owner.worker} has read all of it: its last event is older than that of others; see to its producers"
    return {"owner": owner.worker, "cause": cause}


def told(found: dict[str, Any]) -> Iterator[str]:
    """The same for a person."""
    yield "running workers"
    for one in found["workers"]:
        yield f"  {one['worker']}: " + (f"ready, {one['partitions']} partitions" if one["ready"] else "not ready")
        yield from (f"    {reason}" for reason in one["reasons"])
        yield from (f"    alarm {kind}: {text}" for kind, text in one["alarms"].items())
    if found["waiting_for"]:
        yield "what ticks wait for"
    for one in found["waiting_for"]:
        since = f"metric {one['metric']} waits since {one['since']} for " if one["metric"] else ""
        yield f"  {since}{one['topic']}[{one['partition']}]{' (stuck)' if one['stuck'] else ''}: {one['cause']}"


def refuse_what_is_not_well(found: dict[str, Any]) -> None:
    """Make the command's status tell a script.

    Raises:
        NotWell: a worker is not ready, or a tick is stuck.
    """
    unready = [one["worker"] for one in found["workers"] if not one["ready"]]
    stuck = list(_names(one for one in found["waiting_for"] if one["stuck"]))
    said = [f"workers not ready: {', '.join(unready)}"] if unready else []
    said += [f"ticks are stuck and wait for {', '.join(stuck)}"] if stuck else []
    if said:
        raise NotWell("; ".join(said) + "; the answer on stdout says why")


def _names(waiting: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield from dict.fromkeys(f"{one['topic']}[{one['partition']}]" for one in waiting)
