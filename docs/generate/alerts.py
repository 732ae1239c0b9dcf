"""Writes docker/prometheus/alerts.yaml, the alert rules of Prometheus: `python -m docs.generate.alerts`.

Tests compare the file with what this makes, ask a real Prometheus that scrapes real workers for every expression, and
try each rule on made-up series (tests/agents/worker/alerts_test.yaml). Each has a section in docs/reference/runbook.md.
"""

from dataclasses import dataclass
from pathlib import Path

import yaml

FILE = Path(__file__).parents[2] / "docker" / "prometheus" / "alerts.yaml"
RUNBOOK = "docs/reference/runbook.md"
WORKERS = 'up{job="shoal"}'
TICKS = "max by (metric) (shoal_tick_seconds)"
OUTPUT = "shoal_last_output_timestamp_seconds"
HEADER = "# Written by `make reference`, from docs/generate/alerts.py: change that.\n"


@dataclass(frozen=True)
class Alert:
    """A rule: it fires when the value has crossed the limit for so long."""

    name: str
    value: str
    limit: str
    lasting: str
    severity: str  # critical: look now; warning: look today; info: know
    summary: str

    def rule(self) -> dict[str, object]:
        notes = {"summary": self.summary, "runbook": f"{RUNBOOK}#{self.name.lower()}"}
        wait = {} if self.lasting == "0m" else {"for": self.lasting}
        labels = {"severity": self.severity}
        return {
            "alert": self.name,
            "expr": f"{self.value} {self.limit}",
            **wait,
            "labels": labels,
            "annotations": notes,
        }


ALERTS = (
    Alert(
        "ShoalNobodyWorks", f"(count({WORKERS} == 1) or vector(0))", "< 1", "2m", "critical",
        "No worker can be asked: nothing is released.",
    ),
    Alert(
        "ShoalWorkerDown", WORKERS, "< 1", "5m", "warning",
        "Worker {{ $labels.instance }} cannot be asked.",
    ),
    Alert(
        "ShoalWorkerNotReady", "min by (instance, condition) (shoal_condition)", "< 1", "5m", "warning",
        "Worker {{ $labels.instance }}: condition {{ $labels.condition }} of /readyz does not hold.",
    ),
    Alert(
        "ShoalAlarm", "max by (kind) (shoal_alarm)", "> 0", "0m", "critical",
        "Alarm {{ $labels.kind }}: a person must look at it.",
    ),
    Alert(
        "ShoalLate", f"time() - min by (metric) (shoal_event_time_seconds) - 2 * {TICKS}", "> 900", "5m", "warning",
        "Metric {{ $labels.metric }}: releases are two ticks and more than 15 minutes behind.",
    ),
    Alert(
        "ShoalEventTimeAhead", "max by (metric) (shoal_event_time_ahead_seconds)", "> 60", "5m", "warning",
        "Metric {{ $labels.metric }}: its event time is {{ $value | humanizeDuration }} ahead of the brokers' clock.",
    ),
    Alert(
        "ShoalTickWaits", "max by (metric, topic, partition) (shoal_waits_for_seconds)", "> 600", "0m", "warning",
        "Metric {{ $labels.metric }}: a tick has waited for "
        "{{ $labels.topic }}[{{ $labels.partition }}] for {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "ShoalNoBeats", "max by (topic) (shoal_partitions_without_beats)", "> 0", "10m", "critical",
        "{{ $value }} partitions of {{ $labels.topic }} had no beat: none of its ticks closes.",
    ),
    Alert(
        "ShoalNoReleases",
        f'max({OUTPUT}{{stage="bound"}}) - max({OUTPUT}{{stage="release"}}) - 2 * max(shoal_tick_seconds)', "> 900",
        "5m", "warning", "Events come, and nothing was released for two ticks and more than 15 minutes.",
    ),
    Alert(
        "ShoalDeadLetters", "sum(rate(shoal_dead_letters_total[1h])) / sum(rate(shoal_events_total[1h]))", "> 0.01",
        "15m", "warning", "{{ $value | humanizePercentage }} of the events are refused.",
    ),
    Alert(
        "ShoalMisplaced", "max by (topic, partition) (shoal_misplaced_ratio)", "> 0", "0m", "critical",
        "{{ $value | humanizePercentage }} of {{ $labels.topic }}[{{ $labels.partition }}] is keyed by something else "
        "than the user, and in no release.",
    ),
    Alert(
        "ShoalOpenTransaction", "max by (topic, partition) (shoal_open_transaction_seconds)", "> 59", "0m", "warning",
        "A producer's open transaction has held {{ $labels.topic }}[{{ $labels.partition }}] back for "
        "{{ $value | humanizeDuration }}.",
    ),
    Alert(
        "ShoalAuditLogBehind", "max(shoal_audit_lag_seconds)", "> 900", "5m", "warning",
        "Releases wait for the audit log for {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "ShoalTransactionsGivenUp", 'sum(increase(shoal_transactions_total{result="given_up"}[15m]))', "> 3", "0m",
        "warning", "{{ $value }} transactions were given up in 15 minutes.",
    ),
    Alert(
        "ShoalUnbalanced",
        "(max by (stage, topic) (shoal_assigned_partitions) == bool sum by (stage, topic) (shoal_assigned_partitions))"
        " * (sum by (stage, topic) (shoal_assigned_partitions) > bool 1)"
        " * on () group_left () (count(shoal_build_info) > bool 1)", "> 0", "15m", "warning",
        "One of several workers has all partitions of {{ $labels.topic }}.",
    ),
    Alert(
        "ShoalVersionsDiffer", "count(count by (version, state_format) (shoal_build_info))", "> 1", "30m", "warning",
        "Workers of {{ $value }} versions of shoal run together.",
    ),
    Alert(
        "ShoalKernelRefused", '(count(shoal_kernel_info{kernel="refused"}) or vector(0))', "> 0", "15m", "info",
        "{{ $value }} workers refuse the kernel that they have, and go by its slower twin.",
    ),
    Alert(
        "ShoalBudgetNearlySpent", "max(shoal_budget_epsilon_charged) / max(shoal_budget_epsilon)", "> 0.9", "0m",
        "info", "{{ $value | humanizePercentage }} of the ledger's epsilon are charged.",
    ),
)  # fmt: skip


def page() -> str:
    """The file."""
    groups = {"groups": [{"name": "shoal", "rules": [alert.rule() for alert in ALERTS]}]}
    return HEADER + str(yaml.safe_dump(groups, sort_keys=False, width=200))


if __name__ == "__main__":
    FILE.write_text(page(), "utf-8")
