"""Gauges of a worker's present state: how far it is, and what it waits for.

Every value is a function of configuration and pattern (`readiness.py`), and so is every label: metrics and partitions.
"""

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from shoal.agents.kafka.settings import BOUND, RELEASE
from shoal.agents.worker.readiness import Readiness


def gauges(readiness: Readiness) -> Iterator[Metric]:
    """Yield all gauges, from one look at the worker."""
    readiness.look()
    complete = "event time up to which the releases are complete here"
    yield _by_metric("event_time_seconds", complete, readiness.event_times())
    yield _by_metric("seconds_since_tick", "seconds since a tick closed here", readiness.seconds_since_tick())
    text = "source partitions that hold up an open tick whose end others have passed"
    waits = GaugeMetricFamily("shoal_waits_for", text, labels=["metric", "partition"])
    for metric, partition in sorted(readiness.waits_for()):
        waits.add_metric([metric, str(partition)], 1)
    yield waits
    behind = (
        ("lag_events", "records of source topics that are not committed yet", readiness.lag(BOUND)),
        ("lag_messages", "records of the contributions that are not committed yet", readiness.lag(RELEASE)),
        ("audit_log_behind", "records that the audit log has not taken yet", readiness.audit_behind()),
    )
    reached = (
        ("audit_log_away", "whether the audit log could not be reached", readiness.host.sink.away),
        ("brokers_away", "whether no broker could be reached", readiness.host.reach.away),
    )
    for name, text, value in reached if readiness.domain.discreet else (*behind, *reached):
        yield GaugeMetricFamily(f"shoal_{name}", text, value=value)


def _by_metric(name: str, text: str, values: dict[str, float]) -> Metric:
    family = GaugeMetricFamily(f"shoal_{name}", text, labels=["metric"])
    for metric, value in sorted(values.items()):
        family.add_metric([metric], value)
    return family
