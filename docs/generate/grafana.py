"""Writes docker/grafana/dashboards/shoal.json, for those who run shoal: `python -m docs.generate.grafana`.

Tests compare the file with what this makes, and ask a real Prometheus that scrapes real workers for every expression.
Panels that tell how many events there are stay empty with relation add-remove, unless `[web] counters = true`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "docker" / "grafana" / "dashboards" / "shoal.json"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
OF = '{job=~"$job"}'
WIDTH, HEIGHT = 24, 8


@dataclass(frozen=True)
class Panel:
    """A picture of some expressions, each with its legend."""

    row: str
    title: str
    text: str
    unit: str
    targets: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    width: int = 8


def quantile(name: str, by: str) -> str:
    """95 of 100 durations in a histogram are not above it."""
    return f"histogram_quantile(0.95, sum by ({by}) (rate({name}_bucket{OF}[$__rate_interval])))"


RELEASES, EVENTS, HELD = "Releases", "Events", "What holds them up"
PRIVACY, MACHINES = "Budget and audit log", "Workers"
PANELS = (
    Panel(RELEASES, "Behind the clock", "Now, less the event time up to which a metric's releases are complete.", "s",
          ((f"time() - min by (metric) (shoal_event_time_seconds{OF})", "{{metric}}"),), width=6),
    Panel(RELEASES, "Ahead of the clock", "By how much a metric's event time is: ticks close that early.", "s",
          ((f"max by (metric) (shoal_event_time_ahead_seconds{OF})", "{{metric}}"),), width=6),
    Panel(RELEASES, "Since the last tick", "Seconds since a tick of the metric closed anywhere.", "s",
          ((f"min by (metric) (shoal_seconds_since_tick{OF})", "{{metric}}"),), width=6),
    Panel(RELEASES, "Releases", "Per second, of all partitions; a takeover repeats none.", "ops",
          ((f"sum(max by (partition) (rate(shoal_releases_total{OF}[$__rate_interval])))", "releases"),), width=6),
    Panel(HELD, "Ticks wait for", "Source partitions that hold up a tick which others have passed.", "s",
          ((f"max by (metric, topic, partition) (shoal_waits_for_seconds{OF})",
            "{{metric}} for {{topic}} {{partition}}"),)),
    Panel(HELD, "Records behind", "In the topics, and in no transaction yet; audit: not in the audit log yet.", "short",
          ((f"sum by (stage, topic) (shoal_consumer_lag_records{OF})", "{{stage}} {{topic}}"),)),
    Panel(HELD, "Silent for", "Since a stage last wrote contributions, releases, rows of the audit log.", "s",
          ((f"time() - max by (stage) (shoal_last_output_timestamp_seconds{OF})", "{{stage}}"),)),
    Panel(HELD, "Open transactions", "Of producers: nothing behind them in a source partition can be read.", "s",
          ((f"max by (topic, partition) (shoal_open_transaction_seconds{OF})", "{{topic}} {{partition}}"),)),
    Panel(EVENTS, "Events", "Per second.", "ops",
          ((f"sum(rate(shoal_events_total{OF}[$__rate_interval]))", "events"),)),
    Panel(EVENTS, "Refused", "Dead letters per second, by metric and reason.", "ops",
          ((f"sum by (metric, reason) (rate(shoal_dead_letters_total{OF}[$__rate_interval]))",
            "{{metric}} {{reason}}"),)),
    Panel(EVENTS, "Left out", "Samples per second that count no more: beyond their user's cap, or groups.", "ops",
          ((f"sum(rate(shoal_over_cap_total{OF}[$__rate_interval]))", "over the cap"),
           (f"sum(rate(shoal_groups_left_out_total{OF}[$__rate_interval]))", "in further groups"),
           (f"sum(rate(shoal_woke_late_total{OF}[$__rate_interval]))", "after their tick"))),
    Panel(EVENTS, "Misplaced", "Share of a partition that is keyed by something else than the user.", "percentunit",
          ((f"max by (topic, partition) (shoal_misplaced_ratio{OF})", "{{topic}} {{partition}}"),)),
    Panel(PRIVACY, "Epsilon charged", "Of the ledger's budget, once for each metric version.", "percentunit",
          ((f"max(shoal_budget_epsilon_charged{OF}) / max(shoal_budget_epsilon{OF})", "charged"),), "stat", 6),
    Panel(PRIVACY, "Epsilon left", "What new metrics and versions may still be charged.", "none",
          ((f"max(shoal_budget_epsilon{OF}) - max(shoal_budget_epsilon_charged{OF})", "left"),), "stat", 6),
    Panel(PRIVACY, "Audit log behind", "For how long the oldest release has waited for the audit log.", "s",
          ((f"max(shoal_audit_lag_seconds{OF})", "waits"),), width=12),
    Panel(MACHINES, "Conditions that do not hold", "Workers for which a condition of /readyz fails.", "none",
          ((f"sum by (condition) (1 - shoal_condition{OF})", "{{condition}}"),)),
    Panel(MACHINES, "Alarms", "1: a person must look; see the runbook.", "none",
          ((f"max by (kind) (shoal_alarm{OF})", "{{kind}}"),)),
    Panel(MACHINES, "Partitions", "Worked on, by worker and stage.", "none",
          ((f"sum by (instance, stage) (shoal_assigned_partitions{OF})", "{{instance}} {{stage}}"),)),
    Panel(MACHINES, "Transactions", "95 of 100 committed ones take no longer.", "s",
          ((quantile("shoal_transaction_duration_seconds", "le, stage"), "{{stage}}"),)),
    Panel(MACHINES, "Given up", "Transactions per second that did not commit in time.", "ops",
          (('sum by (stage) (rate(shoal_transactions_total{job=~"$job",result="given_up"}[$__rate_interval]))',
            "{{stage}}"),)),
    Panel(MACHINES, "Takeovers", "Seconds that they took in all, and how often there was one.", "s",
          ((f"sum by (instance) (shoal_restore_duration_seconds_sum{OF})", "{{instance}} seconds"),
           (f"sum by (instance) (shoal_restore_duration_seconds_count{OF})", "{{instance}} takeovers"))),
    Panel(MACHINES, "Versions", "Of shoal, of Python, of the state's format.", "none",
          ((f"count by (version, python, state_format) (shoal_build_info{OF})",
            "{{version}}, Python {{python}}, state {{state_format}}"),), "stat", 24),
)  # fmt: skip


def page() -> str:
    """The file."""
    dashboard = {
        "uid": "shoal",
        "title": "shoal",
        "description": "Written by `make reference`, from docs/generate/grafana.py: change that.",
        "tags": ["shoal"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [*_variables()]},
        "panels": [*_panels()],
    }
    return json.dumps(dashboard, indent=2) + "\n"


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    yield {
        "name": "job",
        "label": "Job",
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": "label_values(shoal_build_info, job)", "refId": "job"},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
    }


def _panels() -> Iterator[dict[str, Any]]:
    top = 0
    for row, panels in groupby(PANELS, lambda panel: panel.row):
        yield {"type": "row", "title": row, "collapsed": False, "gridPos": _place(0, top, WIDTH, 1), "panels": []}
        top, left = top + 1, 0
        for panel in panels:
            if left + panel.width > WIDTH:
                top, left = top + HEIGHT, 0
            yield _panel(panel) | {"gridPos": _place(left, top, panel.width, HEIGHT)}
            left += panel.width
        top += HEIGHT


def _place(x: int, y: int, w: int, h: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": w, "h": h}


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "id": 1 + PANELS.index(panel),
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + number), "datasource": SOURCE, "expr": expr, "legendFormat": legend}
            for number, (expr, legend) in enumerate(panel.targets)
        ],
    }


if __name__ == "__main__":
    FILE.write_text(page(), "utf-8")
