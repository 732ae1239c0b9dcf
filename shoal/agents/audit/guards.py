"""Guards of registration: what the ledger refuses, in one table.

Each guard is a function of what is asked and of what is registered, in whichever app of the log, and raises
`LedgerError`. Nothing is written before all guards have passed. Versions are told apart by app, metric and number, so a
version of one app hides none of another one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import orjson

from shoal.agents.audit.budget import BudgetReport, check_budget
from shoal.agents.audit.owners import Ownership
from shoal.agents.audit.requests import Registration, Request
from shoal.agents.lost_records import changed_count
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.config.unit import parse_unit
from shoal.models.digests import parameters_digest
from shoal.models.errors import LedgerError
from shoal.models.exact import exact_text
from shoal.models.parameters import (
    clock_in,
    differing,
    is_by_period,
    pattern_in,
    person_in,
    time_in,
    topic_in,
    values_in,
)
from shoal.models.tables import ACTIVE, RETIRED, MetricVersion
from shoal.models.version import NoiseName, VersionId

OF_FILES = "shoal audit replay --from events computes it again; give file runs an app of their own"
TERMS = ("epsilon", "delta", "unit", "relation", "charge_epsilon", "charge_delta")
AMOUNTS = ("epsilon", "delta", "charge_epsilon", "charge_delta")


@dataclass(frozen=True)
class Version:
    """Requested or registered metric version, with its parameters parsed."""

    id: VersionId
    relation: str
    said: Mapping[str, Any]  # parameters

    @property
    def topic(self) -> str:
        return topic_in(self.said)

    def __str__(self) -> str:
        return f"{self.id} of app {self.id.app!r}"


@dataclass(frozen=True)
class Asked:
    """Input of the guards: a request, and what the log has of all apps."""

    request: Request
    known: Mapping[VersionId, MetricVersion]
    owners: Mapping[VersionId, Ownership]
    persons: Mapping[str, str]  # user field by topic
    partitions: Mapping[str, int]  # topics that workers of the app have read
    epochs: Mapping[str, int]  # clock restarts of the app, by topic
    book: BudgetReport | None

    @property
    def old(self) -> Iterator[tuple[Registration, MetricVersion]]:
        """Versions that are asked for and registered."""
        for each in self.request.registrations:
            if each.id in self.known:
                yield each, self.known[each.id]

    @property
    def new(self) -> list[Registration]:
        """Versions that are asked for and not registered."""
        return [each for each in self.request.registrations if each.id not in self.known]

    @cached_property
    def all(self) -> list[Version]:
        """Versions of the log and the new ones, of every app and in every state: what is published stays known."""
        held = [Version(name, row.relation, orjson.loads(row.parameters)) for name, row in self.known.items()]
        return held + [Version(each.id, each.relation, each.said) for each in self.new]


def refuse(asked: Asked) -> None:
    """Run all guards.

    Raises:
        LedgerError: one of them refuses.
    """
    for guard in GUARDS:
        guard(asked)


def _consistent(asked: Asked) -> None:
    """Refuse a registration that contradicts itself: no audit could confirm its ledger."""
    for each in asked.request.registrations:
        if parameters_digest(each.parameters) != each.digest:
            raise LedgerError(f"{each.id}: the digest is not that of its parameters; upgrade shoal")
        for name in ("epsilon", "delta"):
            amount, charge = Fraction(getattr(each, name)), Fraction(getattr(each, f"charge_{name}"))
            if not 0 <= amount <= charge:
                raise LedgerError(
                    f"{each.id}: {name} {exact_text(amount)} and its charge {exact_text(charge)}: a charge is at least "
                    "what the metric uses, and neither is negative; correct [[metric]]"
                )


def _unchanged(asked: Asked) -> None:
    """Refuse a registered version with other parameters, another key, unit, relation or charge."""
    for each, row in asked.old:
        if row.parameters != each.parameters or row.digest != each.digest:
            changed = ", ".join(differing(row.parameters, each.parameters)) or "their notation"
            raise LedgerError(
                f"{each.id} is registered with other parameters ({changed}); set them back, or raise its version"
            )
        if row.key_fingerprint != asked.request.key_fingerprint:
            raise LedgerError(
                f"{each.id} is registered with key {row.key_fingerprint}, not {asked.request.key_fingerprint}; put "
                "that key file back, or raise its version"
            )
        wanted = {name: getattr(each, name) for name in TERMS}
        wanted |= {name: Fraction(wanted[name]) for name in AMOUNTS}
        different = [name for name in TERMS if getattr(row, name) != wanted[name]]
        if different:
            raise LedgerError(f"{each.id} is registered with another {', '.join(different)}; raise its version")


def _in_use(asked: Asked) -> None:
    """Refuse a version that is retired."""
    for each, row in asked.old:
        if row.state == RETIRED:
            raise LedgerError(f"{each.id} is retired and cannot return; raise its version")


def _owned(asked: Asked) -> None:
    """Refuse a version of the other kind of owner, and a new version of file runs beside one of workers."""
    request = asked.request
    by_workers = {
        (name.app, name.metric)
        for name, owner in asked.owners.items()
        if owner.by_workers and asked.known[name].state == ACTIVE
    }
    for each in request.registrations:
        owner, topic = asked.owners.get(each.id), topic_in(each.said)
        if not request.file_run:
            if owner and not owner.by_workers:
                raise LedgerError(
                    f"{each.id} belongs to file runs, and a version has one owner for life; send the file into the "
                    "topic with shoal produce, under a version of its own"
                )
        elif owner and owner.by_workers:
            raise LedgerError(f"{each.id} belongs to workers, and a version has one owner for life; {OF_FILES}")
        elif owner is None and topic in asked.partitions:
            raise LedgerError(f"{each.id}: workers of app {request.app!r} read topic {topic!r}; {OF_FILES}")
        elif owner is None and (each.app, each.metric) in by_workers:
            raise LedgerError(f"{each.id} would retire the version that workers publish; {OF_FILES}")


def _rising(asked: Asked) -> None:
    """Refuse a new version below one of the same metric."""
    for each in asked.new:
        same = [name.version for name in asked.known if (name.app, name.metric) == (each.app, each.metric)]
        if each.version < max(same, default=0):
            raise LedgerError(f"{each.id}: version {max(same)} is registered already; choose a higher version")


def _fresh_noise(asked: Asked) -> None:
    """Refuse a new version whose noise another app has: noise depends on key and `NoiseName` alone."""
    held = {
        (NoiseName(row.metric, row.version, row.digest), row.key_fingerprint): row.app for row in asked.known.values()
    }
    for each in asked.new:
        app = held.get((NoiseName(each.metric, each.version, each.digest), asked.request.key_fingerprint))
        if app is not None:
            raise LedgerError(
                f"{each.id} runs under app {app!r} with this key; the same noise on two streams would show "
                "their difference: use another key, or another name"
            )


def _one_role(asked: Asked) -> None:
    """Refuse a field of a topic, or a prefix of one, that is value in one metric of the log and pattern in another."""
    values = dict.fromkeys((each.topic, path) for each in asked.all for path in values_in(each.said))
    patterns = dict.fromkeys((each.topic, path) for each in asked.all for path in pattern_in(each.said))
    for topic, value in values:
        for path in [path for other, path in patterns if other == topic]:
            if f"{value}.".startswith(f"{path}.") or f"{path}.".startswith(f"{value}."):
                raise LedgerError(
                    f"topic {topic!r}: {value!r} is the value of one metric of this log and {path!r} is public in "
                    "another; a field is one or the other"
                )


def _one_time(asked: Asked) -> None:
    """Refuse metrics of one topic with different time fields if the ledger's unit has a period."""
    if parse_unit(asked.request.unit).period is None:
        return
    times: dict[str, set[str]] = {}
    for each in asked.all:
        if is_by_period(each.said):
            times.setdefault(each.topic, set()).add(time_in(each.said) or "the record's timestamp")
    for topic, fields in times.items():
        if len(fields) > 1:
            raise LedgerError(
                f"topic {topic!r}: metrics of this log have periods by {' and by '.join(sorted(fields))}; a ledger of "
                f"unit {asked.request.unit} needs one time for all of a topic: use one field, or another log"
            )


def _one_person(asked: Asked) -> None:
    """Refuse a user field that is not the one which the ledger recorded for the topic."""
    persons = dict(asked.persons)
    for each in asked.new:
        for topic, field in person_in(each.said).items():
            if (held := persons.setdefault(topic, field)) != field:
                raise LedgerError(
                    f'topic "{topic}": {each.id} counts people by "{field}", and this ledger counts them by "{held}": '
                    f'use "{held}", or an audit log of its own'
                )


def _within_budget(asked: Asked) -> None:
    """Refuse charges that do not fit into the budget."""
    request = asked.request
    charges = [(str(each.id), Fraction(each.charge_epsilon), Fraction(each.charge_delta)) for each in asked.new]
    check_budget(asked.book, request.budget_epsilon, request.budget_delta, request.unit, request.counts_by, charges)


def _one_relation(asked: Asked) -> None:
    """Refuse a topic of which one metric of the log hides who contributes, and another one publishes it."""
    hidden: dict[str, Version] = {}
    shown: dict[str, Version] = {}
    for each in asked.all:
        (hidden if each.relation == ADD_REMOVE else shown).setdefault(each.topic, each)
    for topic in hidden.keys() & shown.keys():
        raise LedgerError(
            f"topic {topic!r}: {hidden[topic]} hides who contributes, and {shown[topic]}, of relation {VALUES}, "
            "publishes it; choose one relation for all that is read of a topic"
        )


def _same_partitions(asked: Asked) -> None:
    """Refuse a topic that has another number of partitions than when workers of the app first read it."""
    for topic, partitions in asked.request.partitions.items():
        if asked.partitions.get(topic, partitions) != partitions:
            raise LedgerError(changed_count(topic, partitions, asked.partitions[topic]))


def _one_epoch(asked: Asked) -> None:
    """Refuse a new version with an older clock than its topic's last restart.

    Where presence is protected, refuse metrics of a topic on both sides of a restart: their ticks have one order.
    """
    for new in asked.new:
        topic, epoch = clock_in(new.said)
        if epoch != asked.epochs.get(topic, 0):
            raise LedgerError(f"{new.id}: the clocks of topic {topic} were restarted just now; start again")
    found: dict[str, tuple[int, str]] = {}
    for each in asked.request.registrations:
        topic, epoch = clock_in(each.said)
        other = found.setdefault(topic, (epoch, str(each.id)))
        if each.relation == ADD_REMOVE and other[0] != epoch:
            older = min(other, (epoch, str(each.id)))
            raise LedgerError(
                f"topic {topic}: {older[1]} has the clock from before its restart, and others the one after it; with "
                "relation add-remove all metrics of a topic have one: raise its version, too"
            )


# In the order in which an operator should hear of them.
GUARDS: tuple[Callable[[Asked], None], ...] = (
    _consistent, _unchanged, _in_use, _owned, _rising, _fresh_noise, _one_role, _one_time, _one_person, _within_budget,
    _one_relation, _same_partitions, _one_epoch,
)  # fmt: skip


def replaced(asked: Asked, active: Iterable[VersionId]) -> tuple[VersionId, ...]:
    """Active versions that a new one of the same metric retires."""
    metrics = {(each.app, each.metric) for each in asked.new}
    return tuple(name for name in active if (name.app, name.metric) in metrics)
