"""The worker's small web server, for a supervisor, a load balancer and Prometheus. It needs a configured port.

    /healthz    200 as long as the process works at all
    /readyz     200 if all conditions hold; else 503. All of them, alarms, and what ticks wait for
    /metrics    in the format of Prometheus

and for one release more, as they were before:

    /health     200 if it has started and no alarm is up; else 503, with the alarms
    /ready      200 if it does its work; else 503, with the reasons

All answers are functions of configuration and pattern: they count records, releases and refusals, and never depend on a
value, on who a user is, or on how many values were clipped. Where presence is protected, pattern is too: then answers
are functions of beats, of what is published and of who answers, unless `[web] counters` says otherwise. Fails if the
port is taken.

The stream's event loop renders all answers but that of /healthz, at most once a second; the rest is done by a thread of
its own (`shoal/agents/http_server/shared_answers.py`), so that no number of requests holds the stream up.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from shoal.agents.http_server.limits import listen
from shoal.agents.http_server.names import Names
from shoal.agents.http_server.shared_answers import Answer, serve_aside
from shoal.agents.kafka.settings import BOUND, RELEASE
from shoal.agents.worker.conditions import report
from shoal.agents.worker.gauges import gauges
from shoal.agents.worker.health import REPEATED_MESSAGES
from shoal.agents.worker.host import Host
from shoal.agents.worker.outbox import BoundMachine, ReleaseMachine
from shoal.agents.worker.partition import Partition
from shoal.agents.worker.readiness import REPEATED, Readiness
from shoal.agents.worker.stages import Stages
from shoal.stream.machine import StagePartition

PATHS = ("/", "/readyz", "/metrics", "/health", "/ready")  # and /healthz
REFUSAL = "this name is not served here; add it to names under [web]\n"
COUNTERS = {
    "events": "events processed",
    "contribution_messages": "messages processed by the release stage",
    "over_cap": "samples beyond their user's cap",
    "groups_left_out": "samples of users who had their groups already",
    "slots_left_out": "samples of units that had their slots already",
    "cells_left_out": "samples of units that had their cells already",
    "undeclared": "samples of keys that are not declared",
    "woke_late": "samples that came after their tick",
    "repeated_messages": "messages left out as repeats",
    "stray_records": "records left out as not written by shoal",
    "recoveries": "partitions taken over",
}
DEAD_LETTERS = "dead_letters."  # then metric and reason: names without dots


class Totals:
    """Counts that never go back, though partitions come and go: those of a partition that left stay counted."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._gone: Counter[str] = Counter()
        self._held: dict[StagePartition, Partition] = {}
        host.on_owned.append(self.look)

    def look(self) -> None:
        """Note which partitions came and went; called after every takeover."""
        for partition, part in list(self._held.items()):
            if self._host.partitions.get(partition) is not part:
                self._gone += _counts(partition, part)
                del self._held[partition]
        for partition, part in self._host.partitions.items():
            if partition not in self._held:
                self._held[partition] = part
                self._gone["recoveries"] += 1

    def counts(self) -> Counter[str]:
        self.look()
        return sum((_counts(partition, part) for partition, part in self._held.items()), self._gone)


def _counts(partition: StagePartition, part: Partition) -> Counter[str]:
    counts: Counter[str] = Counter()
    if isinstance(part.machine, BoundMachine | ReleaseMachine):
        counts += part.machine.counters
    if isinstance(part.machine, ReleaseMachine):
        counts["stray_records"] += part.machine.strays.count
    counts["events" if partition.stage == BOUND else "contribution_messages"] += part.events
    return counts


class Metrics(Collector):
    """The collector of Prometheus: all metrics, collected anew for every rendering."""

    def __init__(self, readiness: Readiness) -> None:
        self._host, self._domain = readiness.host, readiness.domain
        self.totals = Totals(readiness.host)
        self.readiness = readiness

    def collect(self) -> Iterator[Metric]:
        counts = self.totals.counts()
        if not self._domain.discreet:
            yield from self._counters(counts)
        yield self._releases()
        owned = len(self._host.partitions)
        yield GaugeMetricFamily("shoal_owned_partitions", "partitions worked on now", value=owned)
        waiting = "metrics whose new releases wait until what is published is made again"
        yield GaugeMetricFamily("shoal_withheld_metrics", waiting, value=len(self._domain.withheld))
        ready = is_ready(self._domain, counts) and not self.readiness.reasons()
        yield GaugeMetricFamily("shoal_ready", "whether this worker does its work", value=ready)
        yield from gauges(self.readiness)

    def _counters(self, counts: Counter[str]) -> Iterator[Metric]:
        for name, text in COUNTERS.items():
            yield CounterMetricFamily(f"shoal_{name}", text, value=counts[name])
        refused = CounterMetricFamily("shoal_dead_letters", "refused events", labels=["metric", "reason"])
        for name, count in sorted(counts.items()):
            if name.startswith(DEAD_LETTERS):
                refused.add_metric(name.removeprefix(DEAD_LETTERS).split(".", 1), count)
        yield refused

    def _releases(self) -> Metric:
        """Releases of a partition since its first, so that a takeover neither loses nor repeats any."""
        family = CounterMetricFamily("shoal_releases", "releases since a partition's first", labels=["partition"])
        for partition, part in sorted(self._host.partitions.items()):
            if partition.stage == RELEASE and isinstance(part.machine, ReleaseMachine):
                family.add_metric([str(partition.number)], part.machine.published_count)
        return family


def is_ready(domain: Stages, counts: Counter[str]) -> bool:
    """Whether no alarm is up; a repeated message is skipped, and raises one."""
    if counts["repeated_messages"] and not domain.discreet:
        domain.health.alarm(REPEATED_MESSAGES, REPEATED)
    return domain.health.ready


def serve(readiness: Readiness, host: str, port: int, names: tuple[str, ...] = ()) -> None:
    """Listen, and answer from now on; the running event loop renders the answers. The server ends with the process.

    Raises:
        PortTaken: the port cannot be listened on.
    """
    listening = listen(host, port, where="[web]: ", remedy="choose another port")
    registry, metrics = CollectorRegistry(), Metrics(readiness)
    registry.register(metrics)
    serve_aside(listening, Names(host, names), REFUSAL, PATHS, lambda: rendered(metrics, registry))


def rendered(metrics: Metrics, registry: CollectorRegistry) -> dict[str, Answer]:
    """Answers to `PATHS`, from one look at the worker."""
    readiness, domain = metrics.readiness, metrics.readiness.domain
    report_, reasons = report(readiness), readiness.reasons()
    health = {"ready": is_ready(domain, metrics.totals.counts())}
    return {
        "/": Answer(b"shoal worker: /healthz /readyz /metrics\n", content_type="text/plain; charset=utf-8"),
        "/readyz": _said(report_),
        "/metrics": Answer(generate_latest(registry), content_type=CONTENT_TYPE_LATEST),
        "/health": _said(health if health["ready"] else {**health, "alarms": domain.health.alarms}),
        "/ready": _said({"ready": not reasons, "reasons": reasons}),
    }


def _said(fields: dict[str, Any]) -> Answer:
    """JSON whose status says whether it is ready."""
    return Answer(json.dumps(fields).encode(), 200 if fields["ready"] else 503)
