"""Turns: decisions of an operator about how a topic is read from then on.

A clock never goes back. If a wrong time took it too far, the operator restarts the clocks of the topic: versions that
are registered afterwards have clocks of the next epoch, which have heard nothing. Older versions keep theirs. So
nothing that was closed is closed again, and a version never changes its clock.

Where records of a source were gone before they were read, the operator accepts the loss: the partition goes on behind
it, with the same versions, accounts and noise, and nothing is charged. An accepted loss holds for the one state that it
names, so no partition applies it twice. If several losses were accepted for one state, the last one holds.
"""

from collections import Counter
from collections.abc import Mapping

import orjson
from sqlalchemy import Connection, insert, select

from shoal.models.losses import AcceptedLoss, Place
from shoal.models.parameters import clock_in
from shoal.models.tables import CLOCK, LOSS, MetricVersion, Turn


def epochs(connection: Connection, app: str) -> Counter[str]:
    """Number of clock restarts of an app, by topic."""
    rows = connection.execute(select(Turn.topic).where(Turn.app == app, Turn.kind == CLOCK))
    return Counter(row.topic for row in rows)


def restart_clock(connection: Connection, app: str, topic: str, who: str, at: str) -> int:
    """Restart the clocks of a topic for versions to come; the number of restarts."""
    row = {"app": app, "kind": CLOCK, "topic": topic, "who": who, "at": at}
    connection.execute(insert(Turn).values(row))
    return epochs(connection, app)[topic]


def accept_loss(
    connection: Connection, app: str, topic: str, places: Mapping[int, Place], who: str, at: str
) -> list[AcceptedLoss]:
    """Accept losses of a topic, by partition; what was written."""
    for partition, place in places.items():
        row = {"partition": partition, "place": place.encode(), "who": who, "at": at}
        connection.execute(insert(Turn).values(row | {"app": app, "kind": LOSS, "topic": topic}))
    return losses(connection, app)[-len(places) :]


def losses(connection: Connection, app: str) -> list[AcceptedLoss]:
    """The accepted losses of an app, in order."""
    named = select(Turn.id, Turn.topic, Turn.partition, Turn.place, Turn.who, Turn.at)
    rows = connection.execute(named.where(Turn.app == app, Turn.kind == LOSS).order_by(Turn.id))
    return [
        AcceptedLoss(number, topic, partition or 0, Place.decode(place or "{}"), who, at)
        for number, topic, partition, place, who, at in rows
    ]


def lost_turns(connection: Connection) -> str | None:
    """Evidence that the log has lost clock restarts: a version of a later epoch than the log has; None without any."""
    counts: dict[str, Counter[str]] = {}
    for row in connection.execute(select(MetricVersion.app, MetricVersion.metric, MetricVersion.parameters)):
        topic, epoch = clock_in(orjson.loads(row.parameters))
        if row.app not in counts:
            counts[row.app] = epochs(connection, row.app)
        if epoch > counts[row.app][topic]:
            return f'metric "{row.metric}" began after restart {epoch} of the clocks of topic {topic}'
    return None
