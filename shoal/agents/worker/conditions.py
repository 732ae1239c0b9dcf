"""Whether a worker is ready, condition by condition: what `/readyz` answers and `shoal check --workers` reads.

A condition is about what this worker can do: it has started, the group has given it partitions, it has read their
state, brokers and audit log answer, and its metric versions are its own to publish. That a tick waits for somebody
else, or that a person has to look at an alarm, stands beside them and makes nobody unready: a roll-out must not stop
for it.

Two conditions are about what comes in, and a roll-out stops for them: where a large part of a source partition is
misplaced, or an open transaction hides what is behind it, nothing else shows that releases lack it.

All of it is a function of clocks, of who owns what, of who answers, and of numbers of records. How far a partition is
behind and how many records are misplaced tells how many events there are; where presence is protected it is not said.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from shoal.agents.worker.readiness import Readiness
from shoal.models.times import iso

AUDIT_LIMIT = 300.0  # seconds for which a record may wait for the audit log


class Condition(NamedTuple):
    """One of them, and what to say about it."""

    name: str
    ok: bool
    text: str


def conditions(readiness: Readiness) -> list[Condition]:
    """All conditions, whether they hold or not, by the last look."""
    return [*_conditions(readiness)]


def _conditions(readiness: Readiness) -> Iterator[Condition]:
    host, domain, settings = readiness.host, readiness.domain, readiness.settings
    started = domain.health.running
    agreed = "brokers, topics and the audit log were agreed with"
    yield Condition("started", started, agreed if started else "not yet: " + agreed.replace("were", "are still to be"))
    assigned = readiness.why_unassigned
    yield Condition("assigned", assigned is None, assigned or f"{len(host.partitions)} partitions")
    unrestored = readiness.why_unrestored
    yield Condition("restored", unrestored is None, unrestored or "the state of all partitions is in use")
    brokers = f"no broker of {settings.brokers} answers" if host.reach.away else f"{settings.brokers} answers"
    yield Condition("brokers", not host.reach.away, brokers)
    behind = None
    if host.sink.away:
        behind = "the audit log cannot be reached; releases go on, and it catches up later"
    elif readiness.audit_seconds() > AUDIT_LIMIT:
        behind = f"something has waited for the audit log for more than {AUDIT_LIMIT:.0f} s"
    yield Condition("audit", behind is None, behind or "the audit log takes what is published")
    names = ", ".join(sorted(domain.withheld))
    why = f"new releases of {names} wait until those in the audit log are made again from the topics"
    yield Condition("versions", not names, why if names else "nothing in the audit log has yet to be made again")
    if not domain.discreet:
        yield from _of_input(readiness)


def _of_input(readiness: Readiness) -> Iterator[Condition]:
    """Conditions of what is in the source partitions, which a discreet worker does not have."""
    wrong = [*readiness.misplaced().values()]
    more = f" (and {len(wrong) - 1} more partitions)" if wrong[1:] else ""
    yield Condition("keys", not wrong, f"{wrong[0]}{more}" if wrong else "records are keyed by their users")
    held = [*readiness.held_back().values()]
    more = f" (and {len(held) - 1} more partitions)" if held[1:] else ""
    none = "no open transaction holds a source partition back"
    yield Condition("transactions", not held, f"{held[0]}{more}" if held else none)


def report(readiness: Readiness) -> dict[str, Any]:
    """The JSON that `/readyz` answers: conditions, alarms, and the partitions that open ticks wait for."""
    readiness.look()
    found, wall, discreet = conditions(readiness), readiness.wall(), readiness.domain.discreet
    return {
        "ready": all(condition.ok for condition in found),
        "conditions": [condition._asdict() for condition in found],
        "alarms": readiness.domain.health.alarms,
        "waiting_for": [
            {
                **waited._asdict(),
                "since": iso(round((wall - seconds) * 1000) * 1000),
                "stuck": seconds > readiness.patience,
            }
            for waited, seconds in readiness.waiting().items()
        ],
        "without_beats": [{"topic": topic, "partition": number} for topic, number in sorted(readiness.silent())],
        "partitions": [
            {"stage": partition.stage, "topic": partition.topic, "partition": partition.number}
            | ({} if discreet else {"behind": count})
            for partition, count in readiness.behind().items()
        ],
    }
