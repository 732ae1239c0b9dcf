"""Metrics, alerts and dashboard, held against a real Prometheus that scrapes real workers."""

import json
import re
from pathlib import Path

import orjson
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from docs.generate import alerts, grafana
from shoal.agents.worker.health import KINDS
from tests.agents.worker.test_web import WithPort, free_port, get, lines, samples
from tests.support.kafka import Kafka
from tests.support.prometheus import Prometheus, promtool
from tests.support.workers import Worker, shoal, wait_until

ROOT = Path(__file__).parents[3]
UNIT_TESTS = Path(__file__).with_name("alerts_test.yaml")
HOUR = 3600
COMPARED = re.compile(r"(?P<value>.*) (?:<|>|==) [\d.]+")
# What the dashboard's variables may stand for.
VARIABLES = {"$job": ".+", "$__rate_interval": "10s"}


def rules() -> dict[str, str]:
    """Alert -> expression, as they are in the file."""
    (group,) = yaml.safe_load(alerts.FILE.read_text())["groups"]
    return {rule["alert"]: rule["expr"] for rule in group["rules"]}


def panels() -> dict[str, str]:
    """Panel and its letter -> expression, as they are in the file."""
    shown = json.loads(grafana.FILE.read_text())["panels"]
    found = {}
    for panel in shown:
        for target in panel.get("targets", ()):
            expression = target["expr"]
            for variable, value in VARIABLES.items():
                expression = expression.replace(variable, value)
            found[f"{panel['title']} {target['refId']}"] = expression
    return found


def asked() -> dict[str, str]:
    """All expressions: of an alert what is compared with its limit, for that comes to nothing if all is well."""
    values = {name: COMPARED.fullmatch(expression) for name, expression in rules().items()}
    assert all(values.values())
    return panels() | {name: match["value"] for name, match in values.items() if match}


@pytest.mark.parametrize("page", [alerts, grafana], ids=["alerts", "grafana"])
def test_the_files_are_what_is_generated(page) -> None:
    assert page.FILE.read_text() == page.page(), "run: make reference"


def test_the_dashboard_is_well_formed() -> None:
    dashboard = json.loads(grafana.FILE.read_text())
    shown = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len({panel["id"] for panel in shown}) == len(shown) == len(grafana.PANELS)
    # nothing lies on anything else, and nothing beyond the edge
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in dashboard["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24
    # and no expression has a variable that nothing is put in for
    assert not [expression for expression in panels().values() if "$" in expression]
    assert {variable["name"] for variable in dashboard["templating"]["list"]} == {"datasource", "job"}


def test_prometheus_takes_the_rules_and_each_fires_when_it_should() -> None:
    assert f"{len(alerts.ALERTS)} rules found" in promtool("check", "rules", alerts.FILE)
    tried = {
        (case["alertname"], bool(case["exp_alerts"]))
        for test in yaml.safe_load(UNIT_TESTS.read_text())["tests"]
        for case in test["alert_rule_test"]
    }
    assert tried == {(alert.name, fires) for alert in alerts.ALERTS for fires in (False, True)}
    promtool("test", "rules", UNIT_TESTS)


def test_every_alert_has_its_section_in_the_runbook() -> None:
    sections = re.findall(r"^### (\w+)$", (ROOT / alerts.RUNBOOK).read_text(), re.MULTILINE)
    assert [name for name in sections if name.startswith("Shoal")] == [alert.name for alert in alerts.ALERTS]


def test_every_kind_of_alarm_has_its_section_in_the_runbook() -> None:
    alarms = (ROOT / alerts.RUNBOOK).read_text().partition("## Alarms")[2].partition("\n## ")[0]
    assert re.findall(r"^### `(\w+)`$", alarms, re.MULTILINE) == list(KINDS)


def event(who: str, seconds: int, **more: object) -> bytes:
    return orjson.dumps({"who": who, "at": seconds, "x": 1.5} | more)


def undocumented(shown: str) -> list[str]:
    """Metrics of a worker that docs/reference/metrics.md lacks, or has with another type or other labels."""
    page = (ROOT / "docs/reference/metrics.md").read_text()
    known = {
        name: (kind, frozenset(filter(None, labels.strip("{}").split(","))))
        for names, kind in re.findall(r"^\| (`shoal_[^|]*) \| (\w+) \|", page, re.MULTILINE)
        for name, labels in re.findall(r"`(shoal_\w+)({[\w,]+})?`", names)
    }
    found = []
    for family in text_string_to_metric_families(shown):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        kind, said = known.get(name, ("none", frozenset()))
        if kind != family.type or (said and labels and said != labels):
            found.append(f"{name} {family.type} {sorted(labels)}: {kind}")
    return found


def test_every_expression_has_an_answer(kafka: Kafka, tmp_path: Path) -> None:
    metrics = ({"name": "few", "max_contributions": 2, "users": 2},)
    with WithPort(kafka, tmp_path, *metrics, sources={"events": 2}, partitions=2, idle_after="10h") as shoals:
        # given two workers, each on a port of its own
        other_port = free_port()
        other = tmp_path / "other.toml"
        other.write_text(shoals.config.read_text().replace(f"port = {shoals.port}", f"port = {other_port}"))
        shoals.worker()
        shoals.workers.append(Worker(other, tmp_path / "other.log"))
        shoals.wait_owned(2, 2)
        ports = [shoals.port, other_port]
        with Prometheus(tmp_path, free_port(), ports, {"rule_files": [str(alerts.FILE)]}) as prometheus:
            # and events that are released, one that is refused, and one so late that its tick waits for others
            shoals.produce([event("p", 0), event("q", HOUR), event("p", HOUR, x=None)], end=True)
            shoals.wait_releases(1)
            shoals.produce([event("p", 9 * HOUR)])
            # then what they show is well-formed, and the reference has each metric with its type and labels
            for port in ports:
                shown = get(port, "/metrics")[1]
                assert promtool("check", "metrics", said=shown) == ""
                assert undocumented(shown) == []
            # and every expression of the alerts and of the dashboard has an answer
            left = asked()

            def all_answered() -> bool:
                for name, expression in list(left.items()):
                    if prometheus.ask(expression):
                        del left[name]
                return not left

            wait_until(all_answered, 60, lambda: f"no answer to {left}\n{samples(ports[0])}", every=0.5)
            assert prometheus.rules() == dict.fromkeys(rules(), "ok")
            # and one command says what the tick waits for, and who has it
            found = shoal("check", shoals.config, "--workers", ",".join(f"127.0.0.1:{port}" for port in ports))
            assert found.returncode == 0, found.stderr
            said = lines(found.stdout)
            assert {f"127.0.0.1:{port}: ready, 2 partitions" for port in ports} < {*said}
            waiting = said[said.index("what ticks wait for") + 1]
            place = re.escape(shoals.topic())
            assert re.fullmatch(
                rf"metric few waits since \S+ for {place}\[\d\]: 127.0.0.1:\d+ has read all of it: its last event is "
                "older than that of others; see to its producers",
                waiting,
            ), waiting
        shoals.stop_all()
