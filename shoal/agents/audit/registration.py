"""Registers metric versions: each is registered once, charged once, and compared from then on."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

import orjson
from sqlalchemy import Connection, insert, select, update

from shoal.agents.audit.budget import check_budget, write_budget
from shoal.agents.audit.completeness import check_whole
from shoal.agents.audit.database import now
from shoal.agents.audit.owners import take_over
from shoal.agents.audit.turns import check_epochs, epoch_of
from shoal.agents.lost_records import changed_count
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.config.unit import parse_unit
from shoal.models.digests import parameters_digest
from shoal.models.errors import LedgerError
from shoal.models.exact import exact_text
from shoal.models.tables import ACTIVE, ENDED, RETIRED, Budget, Log, MetricVersion, PartitionCount
from shoal.stream.parameters import NO_KEYS

Number = Fraction | str | int


@dataclass(frozen=True)
class Registration:
    """A metric version as its configuration has it; amounts are exact, given as numbers or as text of them."""

    metric: str
    version: int
    digest: str  # hexadecimal, of `parameters`
    parameters: str  # JSON object
    epsilon: Number
    delta: Number
    unit: str
    relation: str
    charge_epsilon: Number  # what it costs the ledger's unit at most
    charge_delta: Number

    @property
    def name(self) -> str:
        return version_name(self.metric, self.version)


@dataclass(frozen=True)
class Agreement:
    """What a registration did, or would do."""

    log_id: str
    charged: tuple[Registration, ...]  # new in the ledger; all others were there already
    retired: tuple[tuple[str, int], ...]  # active versions that a newer one of the same metric replaces
    absent: tuple[tuple[str, int], ...]  # active in the ledger, and not asked for


@dataclass(frozen=True)
class Request:
    """All that one configuration asks of the ledger."""

    app: str
    registrations: Sequence[Registration]
    budget_epsilon: Fraction
    budget_delta: Fraction
    key_fingerprint: str
    partitions: Mapping[str, int] = field(default_factory=dict)
    unit: str = "user"
    counts_by: str = VALUES  # the relation of the ledger
    file_run: bool = False  # a run over a file may repeat an ended version; its input is compared at its end
    run: str = ""  # the id of a file run, which takes over the versions of `topic` (None: of all)
    topic: str | None = None


def version_name(metric: str, version: int) -> str:
    """A metric version as messages name it."""
    return f'metric "{metric}" version {version}'


def ended_when(row: MetricVersion) -> str:
    """When a version's stream ended, as messages put it; without a time if no event of the input had one."""
    return f"at {row.ended_at}" if row.ended_at else "without an event that counted, and"


def examine(connection: Connection, request: Request) -> Agreement:
    """Compare with what is registered; say what is new. Raises `LedgerError` where anything differs."""
    check_whole(connection)
    known = {(row.app, row.metric, row.version): row for row in versions(connection)}
    charged, retired = [], []
    for registration in request.registrations:
        _check_itself(registration)
        row = known.get((request.app, registration.metric, registration.version))
        if row is not None:
            _compare(registration, row, request)
            continue
        retired += _replaces(registration, [row for row in known.values() if row.app == request.app])
        _check_key_is_fresh(registration, request, known.values())
        charged.append(registration)
    _check_fields(request.registrations, known.values())
    _check_times(request, known.values())
    charges = [
        (registration.name, Fraction(registration.charge_epsilon), Fraction(registration.charge_delta))
        for registration in charged
    ]
    limits = (request.budget_epsilon, request.budget_delta, request.unit, request.counts_by)
    check_budget(connection, *limits, charges)
    _check_relations(request, known.values())
    _check_partitions(connection, request)
    check_epochs(connection, request.app, [(each.name, each.parameters) for each in charged])
    _check_one_epoch(request)
    asked = {(registration.metric, registration.version) for registration in request.registrations} | set(retired)
    active = [(row.metric, row.version) for row in known.values() if row.app == request.app and row.state == ACTIVE]
    absent = tuple(sorted(version for version in active if version not in asked))
    log_id = connection.execute(select(Log.id)).scalar_one()
    return Agreement(log_id, tuple(charged), tuple(retired), absent)


def register(connection: Connection, request: Request) -> Agreement:
    """Examine, and write what is new, behind a lock that lets one registration into the log at a time."""
    lock(connection)
    agreement = examine(connection, request)
    if connection.execute(select(Budget.one)).one_or_none() is None:
        amounts = (request.budget_epsilon, request.budget_delta)
        write_budget(connection, *amounts, unit=request.unit, relation=request.counts_by)
    for metric, version in agreement.retired:
        set_state(connection, request.app, metric, version, RETIRED)
    known = known_partitions(connection, request.app)
    topics = {(each.metric, each.version): orjson.loads(each.parameters).get("topic") for each in request.registrations}
    for registration in agreement.charged:
        # How far workers had read by then depends on load: where presence is protected, it must decide nothing.
        added = topics[registration.metric, registration.version] in known
        connection.execute(insert(MetricVersion).values(**_row(registration, request), added=added))
    for topic, partitions in request.partitions.items():
        if topic not in known:
            row = {"app": request.app, "topic": topic, "partitions": partitions}
            connection.execute(insert(PartitionCount).values(row))
    take_over(connection, request.app, topics, known.keys() | request.partitions.keys(), request.run, request.topic)
    return agreement


def lock(connection: Connection) -> None:
    """Wait until no one else changes the ledger (SQLite: its write transactions are alone anyway)."""
    connection.execute(select(Log.one).with_for_update())


def set_state(connection: Connection, app: str, metric: str, version: int, state: str, **end: str) -> None:
    """Retire a version, or end it (with `ended_at` and `input_digest`)."""
    where = (MetricVersion.app == app, MetricVersion.metric == metric, MetricVersion.version == version)
    connection.execute(update(MetricVersion).where(*where).values(state=state, **end))


def versions(connection: Connection) -> list[MetricVersion]:
    """All registered versions, of every app, as rows that belong to no session."""
    order = (MetricVersion.app, MetricVersion.metric, MetricVersion.version)
    rows = connection.execute(select(*MetricVersion.__table__.columns).order_by(*order))
    return [MetricVersion(**row._mapping) for row in rows]


def _row(registration: Registration, request: Request) -> dict[str, object]:
    amounts = ("epsilon", "delta", "charge_epsilon", "charge_delta")
    return {
        **asdict(registration),
        **{name: Fraction(getattr(registration, name)) for name in amounts},
        "app": request.app,
        "key_fingerprint": request.key_fingerprint,
        "state": ACTIVE,
        "registered": now(),
    }


def _check_itself(registration: Registration) -> None:
    """Refuse a registration that contradicts itself: no audit could confirm its ledger."""
    if parameters_digest(registration.parameters) != registration.digest:
        raise LedgerError(f"{registration.name}: the digest is not that of its parameters; upgrade shoal")
    for name in ("epsilon", "delta"):
        amount, charge = Fraction(getattr(registration, name)), Fraction(getattr(registration, f"charge_{name}"))
        if not 0 <= amount <= charge:
            raise LedgerError(
                f"{registration.name}: {name} {exact_text(amount)} and its charge {exact_text(charge)}: a charge is at "
                "least what the metric uses, and neither is negative; correct [[metric]]"
            )


def _compare(registration: Registration, row: MetricVersion, request: Request) -> None:
    """Refuse an existing version that is not what it was."""
    wanted = _row(registration, request)
    if row.parameters != registration.parameters or row.digest != registration.digest:
        changed = ", ".join(differing(row.parameters, registration.parameters)) or "their notation"
        raise LedgerError(
            f"{registration.name} is registered with other parameters ({changed}); set them back, or raise its version"
        )
    if row.key_fingerprint != request.key_fingerprint:
        raise LedgerError(
            f"{registration.name} is registered with key {row.key_fingerprint}, not {request.key_fingerprint}; "
            "put that key file back, or raise its version"
        )
    terms = ("epsilon", "delta", "unit", "relation", "charge_epsilon", "charge_delta")
    different = [term for term in terms if getattr(row, term) != wanted[term]]
    if different:
        raise LedgerError(f"{registration.name} is registered with another {', '.join(different)}; raise its version")
    if row.state == RETIRED:
        raise LedgerError(f"{registration.name} is retired and cannot return; raise its version")
    if row.state == ENDED and not request.file_run:
        raise LedgerError(
            f"{registration.name} ended {ended_when(row)} with the end of a file; raise its version "
            "(`shoal run --open` leaves a version open)"
        )


def differing(old: str, new: str) -> list[str]:
    """The keys that differ; where none does, the parameters that follow from the keys and do.

    >>> differing('{"end": 1, "mechanism": "a"}', '{"end": 2, "mechanism": "b"}')
    ['end']
    >>> differing('{"end": 1, "mechanism": "a"}', '{"end": 1, "mechanism": "b"}')
    ['mechanism']
    """
    before, after = orjson.loads(old), orjson.loads(new)
    names = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    return [name for name in names if name not in NO_KEYS] or names


def _replaces(registration: Registration, rows: Iterable[MetricVersion]) -> list[tuple[str, int]]:
    """Active versions of the same metric, which the new one retires; versions only rise."""
    same = [row for row in rows if row.metric == registration.metric]
    highest = max((row.version for row in same), default=0)
    if registration.version < highest:
        raise LedgerError(f"{registration.name}: version {highest} is registered already; choose a higher version")
    return [(row.metric, row.version) for row in same if row.state == ACTIVE]


def _check_key_is_fresh(registration: Registration, request: Request, rows: Iterable[MetricVersion]) -> None:
    """Refuse a version whose noise another app has: noise depends on key, metric, version and parameters alone."""
    for row in rows:
        same = row.metric == registration.metric and row.version == registration.version
        if same and row.digest == registration.digest and row.key_fingerprint == request.key_fingerprint:
            raise LedgerError(
                f"{registration.name} runs under app {row.app!r} with this key; the same noise on two streams would "
                "show their difference: use another key, or another name"
            )


def _check_relations(request: Request, rows: Iterable[MetricVersion]) -> None:
    """Refuse a topic of which one metric of the log hides who contributes, and another publishes it, in whatever state.

    What a retired version has published stays known.
    """
    of_app = [(request.app, each.metric, each.version, each) for each in request.registrations]
    readers: dict[Any, Registration | MetricVersion]
    readers = {(app, metric, version): each for app, metric, version, each in of_app}
    readers |= {(row.app, row.metric, row.version): row for row in rows}
    hidden: dict[Any, str] = {}
    shown: dict[Any, str] = {}
    for (app, metric, version), each in readers.items():
        topic = orjson.loads(each.parameters).get("topic")
        named = f"{version_name(metric, version)} of app {app!r}"
        (hidden if each.relation == ADD_REMOVE else shown).setdefault(topic, named)
    for topic in hidden.keys() & shown.keys():
        raise LedgerError(
            f"topic {topic!r}: {hidden[topic]} hides who contributes, and {shown[topic]}, of relation {VALUES}, "
            "publishes it; choose one relation for all that is read of a topic"
        )


def _check_one_epoch(request: Request) -> None:
    """Refuse metrics of a topic on both sides of a restart where presence is protected: their ticks have one order."""
    found: dict[str, tuple[int, str]] = {}
    for each in request.registrations:
        topic, epoch = epoch_of(each.parameters)
        other = found.setdefault(topic, (epoch, each.name))
        if each.relation == ADD_REMOVE and other[0] != epoch:
            older = min(other, (epoch, each.name))
            raise LedgerError(
                f"topic {topic}: {older[1]} has the clock from before its restart, and others the one after it; with "
                "relation add-remove all metrics of a topic have one: raise its version, too"
            )


def _check_fields(registrations: Sequence[Registration], rows: Iterable[MetricVersion]) -> None:
    """Refuse a field of a topic, or a prefix of one, that is value in one metric of the log and pattern in another."""
    texts = {(each.metric, each.version): each.parameters for each in registrations}
    texts |= {(row.metric, row.version): row.parameters for row in rows}
    values, patterns = [], []
    for parameters in map(orjson.loads, texts.values()):
        topic = parameters.get("topic")
        value = parameters.get("value")
        fields = value["fields"] if isinstance(value, dict) else value if isinstance(value, list) else [value]
        values += [(topic, path) for path in fields if isinstance(path, str)]
        pattern = [parameters.get(role) for role in ("user", "time", "group")]
        pattern += [(parameters.get("cell") or {}).get(role) for role in ("lat", "lon")]
        patterns += [(topic, path) for path in pattern if isinstance(path, str)]
    for topic, value in values:
        for path in [path for other, path in patterns if other == topic]:
            if f"{value}.".startswith(f"{path}.") or f"{path}.".startswith(f"{value}."):
                raise LedgerError(
                    f"topic {topic!r}: {value!r} is the value of one metric of this log and {path!r} is public in "
                    "another; a field is one or the other"
                )


def _check_times(request: Request, rows: Iterable[MetricVersion]) -> None:
    """Refuse a time field that is not the one by which the ledger's periods go."""
    if parse_unit(request.unit).period is None:
        return
    times: dict[Any, set[str]] = {}
    texts = [each.parameters for each in request.registrations] + [row.parameters for row in rows]
    for parameters in map(orjson.loads, texts):
        is_free = parameters.get("statistic") == "count"
        if parameters.get("unit", "user").startswith("user-") and not is_free:
            times.setdefault(parameters.get("topic"), set()).add(parameters.get("time") or "the record's timestamp")
    for topic, fields in times.items():
        if len(fields) > 1:
            raise LedgerError(
                f"topic {topic!r}: metrics of this log have periods by {' and by '.join(sorted(fields))}; a ledger of "
                f"unit {request.unit} needs one time for all of a topic: use one field, or another log"
            )


def known_partitions(connection: Connection, app: str) -> dict[str, int]:
    """Partitions of the topics that an app's workers have read."""
    rows = connection.execute(select(PartitionCount.topic, PartitionCount.partitions).where(PartitionCount.app == app))
    return {row.topic: row.partitions for row in rows}


def _check_partitions(connection: Connection, request: Request) -> None:
    known = known_partitions(connection, request.app)
    for topic, partitions in request.partitions.items():
        if known.get(topic, partitions) != partitions:
            raise LedgerError(changed_count(topic, partitions, known[topic]))
