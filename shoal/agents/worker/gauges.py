"""What `/metrics` shows of a worker's present state and of what it did, from one look at the worker.

Every value is a function of configuration and pattern (`readiness.py`), and so is every label: metrics, stages, topics,
partitions, kinds of alarms; never a group, and nothing of a user. Where presence is protected, `present` is all there
is, a function of clocks, of who owns what and who answers, of what is published and of the ledger; `behind` is not
shown, for lags, numbers of transactions and durations tell how many events there are.

There are no `process_*` and `python_gc_*` metrics: processor time and memory depend on values.
"""

import platform
from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)

from shoal import __version__
from shoal.agents.audit.budget import BudgetReport
from shoal.agents.kafka.settings import AUDIT, BOUND
from shoal.agents.log_stream import lines_lost
from shoal.agents.worker.conditions import conditions
from shoal.agents.worker.health import KINDS
from shoal.agents.worker.readiness import Readiness
from shoal.agents.worker.timings import Histogram, Timings
from shoal.stream.state_mark import FORMAT

BUILD = {"version": __version__, "python": platform.python_version(), "state_format": str(FORMAT)}


def gauges(readiness: Readiness) -> Iterator[Metric]:
    """Yield every metric of `/metrics`; where presence is protected, none that tells how many events there are."""
    readiness.look()
    yield from _present(readiness)
    yield from _ledger(readiness.domain.budget)
    if not readiness.domain.discreet:
        yield from _behind(readiness)
        yield from _timings(readiness.host.timings)
        yield from _of_input(readiness)


def _present(readiness: Readiness) -> Iterator[Metric]:
    host, domain = readiness.host, readiness.domain
    yield InfoMetricFamily("shoal_build", "version of shoal, of Python, and of the state's format", value=BUILD)
    # By topic alone: how many records the kernel took tells who wrote an odd number or name.
    lane = "which lane takes events in, whether the kernel is used, and the kernel that was found"
    yield InfoMetricFamily("shoal_kernel", lane, value=domain.lane.fields())
    knows = {topic: float(domain.lane.module is not None and not keys) for topic, keys in domain.unknown.items()}
    yield _by("topic", "by_kernel", "whether a topic's plain records go by the kernel", knows)
    complete = "event time up to which the releases are complete here"
    yield _by("metric", "event_time_seconds", complete, readiness.event_times())
    lag = "seconds by which the releases of a topic's slowest metric are behind this host's clock"
    yield _by("topic", "event_time_lag_seconds", lag, readiness.event_time_lags())
    ahead = "seconds by which the event time of a metric, less its lateness, is ahead of the brokers' clock"
    times_ahead = {metric: one.seconds for metric, one in readiness.times_ahead().items()}
    yield _by("metric", "event_time_ahead_seconds", ahead, times_ahead)
    promised = "time within which a release is to be readable after its tick has ended"
    yield _one("latency_seconds", promised, readiness.settings.latency)
    yield _by("metric", "tick_seconds", "length of a metric's ticks", readiness.tick_lengths())
    yield _by("metric", "seconds_since_tick", "seconds since a tick closed here", readiness.seconds_since_tick())
    text = "source partitions that hold up an open tick whose end others have passed"
    labels = ["metric", "topic", "partition"]
    lasting = GaugeMetricFamily("shoal_waits_for_seconds", f"{text}, and for how long", labels=labels)
    for (metric, topic, partition), seconds in readiness.waiting().items():
        lasting.add_metric([metric, topic, str(partition)], seconds)
    yield lasting
    silent = Counter(topic for topic, _ in readiness.silent())
    beats = "source partitions that have had no beat, where presence is protected; no tick of the topic closes before"
    topics = {tick.topic for _, tick in readiness.ticks()}
    yield _by("topic", "partitions_without_beats", beats, {topic: float(silent[topic]) for topic in topics})
    outputs = {stage: time for stage, time in host.timings.last_output.items() if stage != BOUND or not domain.discreet}
    last = "when a stage last brought something out: contributions, releases, rows of the audit log"
    yield _by("stage", "last_output_timestamp_seconds", last, outputs)
    owned = Counter((partition.stage, partition.topic) for partition in host.partitions)
    assigned = GaugeMetricFamily(
        "shoal_assigned_partitions", "partitions worked on now, by stage and topic", labels=["stage", "topic"]
    )
    for names, count in sorted(owned.items()):
        assigned.add_metric(names, count)
    yield assigned
    held = {condition.name: float(condition.ok) for condition in conditions(readiness)}
    yield _by("condition", "condition", "whether a condition of /readyz holds", held)
    alarms = domain.health.alarms
    yield _by("kind", "alarm", "whether an alarm is up", {kind: float(kind in alarms) for kind in {*KINDS, *alarms}})
    yield _one("audit_log_away", "whether the audit log could not be reached", host.sink.away)
    yield _one("brokers_away", "whether no broker could be reached", host.reach.away)
    yield CounterMetricFamily("shoal_log_lines_lost", "log lines that could not be written to stderr", lines_lost())


def _ledger(budget: BudgetReport | None) -> Iterator[Metric]:
    if budget is not None:
        epsilon, delta = budget.charged
        yield _one("budget_epsilon", "epsilon of the ledger's budget", float(budget.epsilon))
        yield _one("budget_epsilon_charged", "epsilon that all metric versions were charged", float(epsilon))
        yield _one("budget_delta", "delta of the ledger's budget", float(budget.delta))
        yield _one("budget_delta_charged", "delta that all metric versions were charged", float(delta))


def _behind(readiness: Readiness) -> Iterator[Metric]:
    text, labels = "records of a partition that are not processed yet", ["stage", "topic", "partition"]
    lag = GaugeMetricFamily("shoal_consumer_lag_records", text, labels=labels)
    for place, count in readiness.behind().items():
        lag.add_metric([place.stage, place.topic, str(place.number)], count)
    for (topic, number), count in sorted(readiness.audit_lags().items()):
        lag.add_metric([AUDIT, topic, str(number)], count)
    yield lag
    uncommitted = sum(part.machine.backlog for part in readiness.host.partitions.values())
    yield _one("uncommitted_records", "records and releases that are processed and not committed yet", uncommitted)
    yield _one("audit_lag_records", "records that the audit log has not taken yet", readiness.audit_behind())
    waited = "for how long the oldest record has waited that the audit log has not taken"
    yield _one("audit_lag_seconds", waited, readiness.audit_seconds())


def _of_input(readiness: Readiness) -> Iterator[Metric]:
    labels, text = ["topic", "partition"], "share of misplaced records among the last ones, where it is large; else 0"
    misplaced = GaugeMetricFamily("shoal_misplaced_ratio", text, labels=labels)
    for (topic, number), machine in readiness.sources().items():
        share = machine.placement.found
        misplaced.add_metric([topic, str(number)], share.ratio if share else 0.0)
    yield misplaced
    text = "for how long a producer's open transaction has been seen to hold a source partition back; else 0"
    opened = GaugeMetricFamily("shoal_open_transaction_seconds", text, labels=labels)
    seconds = readiness.standing.seconds()
    for topic, number in readiness.sources():
        opened.add_metric([topic, str(number)], seconds.get((topic, number), 0.0))
    yield opened


def _timings(timings: Timings) -> Iterator[Metric]:
    durations = HistogramMetricFamily(
        "shoal_transaction_duration_seconds",
        "how long committed transactions took, from send to answer",
        labels=["stage"],
    )
    ended = CounterMetricFamily("shoal_transactions", "transactions that ended", labels=["stage", "result"])
    for stage, histogram in sorted(timings.transactions.items()):
        durations.add_metric([stage], histogram.buckets(), histogram.total)
        ended.add_metric([stage, "committed"], histogram.buckets()[-1][1])
        ended.add_metric([stage, "given_up"], timings.given_up[stage])
    yield durations
    yield ended
    yield _restores(timings.restores)


def _restores(histogram: Histogram) -> Metric:
    text = "how long it took to take partitions over, from fencing their old owners to the last state that was read"
    return HistogramMetricFamily(
        "shoal_restore_duration_seconds", text, buckets=histogram.buckets(), sum_value=histogram.total
    )


def _one(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"shoal_{name}", text, value=value)


def _by(label: str, name: str, text: str, values: dict[str, float]) -> Metric:
    family = GaugeMetricFamily(f"shoal_{name}", text, labels=[label])
    for key, value in sorted(values.items()):
        family.add_metric([key], value)
    return family
