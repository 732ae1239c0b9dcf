"""The worker's web server: health for a supervisor, counts of pattern for Prometheus, and nothing else."""

import json
import resource
import socket
import time
import urllib.error
import urllib.request
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from shoal.agents.http_server.limits import PortTaken
from shoal.agents.kafka.settings import BOUND
from shoal.agents.worker.health import KINDS, Health
from shoal.agents.worker.host import Host
from shoal.agents.worker.stages import Stages
from shoal.agents.worker.web import Totals, is_ready, serve
from shoal.stream.machine import StagePartition
from tests.support.backends import mostly
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.strangers import START, refusals
from tests.support.workers import shoal, wait_until

STAGES = ("bound", "release", "audit")


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def samples(port: int) -> dict[str, float]:
    """Name, with labels if any -> value."""
    status, text = get(port, "/metrics")
    assert status == 200
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def labels(port: int) -> dict[str, set[str]]:
    """Name -> values of all labels but those of the build and of buckets."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(get(port, "/metrics")[1]):
        for sample in family.samples if family.name not in ("shoal_build_info", "shoal_kernel_info") else ():
            for name, value in sample.labels.items():
                found.setdefault(name, set()).add(value)
    return {name: values for name, values in found.items() if name != "le"}


def lines(text: str) -> list[str]:
    """What stands in the lines of a text, however deep."""
    return [line.strip() for line in text.splitlines()]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


class WithPort(Deployment):
    """A deployment whose workers listen."""

    port = 0

    def write_config(self, folder: Path | None = None, url: str | None = None) -> None:
        super().write_config(folder, url)
        self.port = self.port or free_port()
        with ((folder or self.folder) / "shoal.toml").open("a") as file:
            file.write(f"[web]\nport = {self.port}\n")


@mostly("kernel")
def test_a_worker_tells_how_it_is_and_how_much_it_does(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    metrics = ({"name": "few", "max_per_group": 2, "group": "city"},)
    with WithPort(kafka, tmp_path, *metrics, sources={"events": 2}, partitions=2, idle_after="1s") as shoals:
        # given events, one of a user beyond the cap, one of a user in a second city, two that cannot be used
        worker = shoals.worker()
        worker.wait_owns(4)
        hour = 3600
        said = [("p", 0, 1.5, "A"), ("p", 1, 2.5, "A"), ("p", 2, 3.5, "A"), ("p", 3, 4.5, "B"), ("q", hour, 5.5, "B")]
        events = [orjson.dumps({"who": who, "at": at, "x": x, "city": city}) for who, at, x, city in said]
        shoals.produce([*events, b"no json", orjson.dumps({"who": "r", "at": hour, "city": "A"})], end=True)
        shoals.wait_releases(2)
        # then it is ready
        assert get(shoals.port, "/health") == (200, '{"ready": true}')
        assert get(shoals.port, "/")[0] == 200
        assert get(shoals.port, "/healthz") == (200, '{"live": true}')
        assert get(shoals.port, "/ready") == (200, '{"ready": true, "reasons": []}')
        status, text = get(shoals.port, "/readyz")
        report = json.loads(text)
        assert (status, report["ready"], report["alarms"], report["waiting_for"]) == (200, True, {}, [])
        assert [one["name"] for one in report["conditions"] if one["ok"]] == [
            "started", "assigned", "restored", "brokers", "audit", "versions", "keys", "transactions"
        ]  # fmt: skip
        assert {(one["stage"], one["partition"]) for one in report["partitions"]} == {
            ("bound", 0), ("bound", 1), ("release", 0), ("release", 1)
        }  # fmt: skip
        assert get(shoals.port, "/nowhere")[0] == 404
        # and has counted
        found: dict[str, float] = {}

        def is_quiet() -> bool:  # between two idle notes: each is a message to be committed
            found.update(samples(shoals.port))
            audited = found["shoal_audit_lag_records"] == 0 and "shoal_last_output_timestamp_seconds audit" in found
            return found["shoal_uncommitted_records"] == 0 and audited

        wait_until(is_quiet, 10, lambda: str(found))
        expected = {
            "shoal_events_total": 7 + 2,  # and a clock record in each partition
            "shoal_over_cap_total": 1,
            "shoal_groups_left_out_total": 1,
            "shoal_dead_letters_total few not-json": 1,
            "shoal_dead_letters_total few no-value": 1,
            "shoal_woke_late_total": 0,
            "shoal_repeated_messages_total": 0,
            "shoal_recoveries_total": 4,
            "shoal_owned_partitions": 4,
            "shoal_ready": 1,
            "shoal_stray_records_total": 0,
            "shoal_audit_log_away": 0,
            "shoal_brokers_away": 0,
            "shoal_log_lines_lost_total": 0,
            "shoal_event_time_seconds few": 2 * hour,
            "shoal_event_time_ahead_seconds few": 0,
            "shoal_uncommitted_records": 0,
            "shoal_audit_lag_records": 0,
            "shoal_audit_lag_seconds": 0,
            f"shoal_consumer_lag_records 1 bound {shoals.topic()}": 0,
            f"shoal_assigned_partitions bound {shoals.topic()}": 2,
            "shoal_condition restored": 1,
            "shoal_tick_seconds few": hour,
            "shoal_latency_seconds": 1,
            f"shoal_partitions_without_beats {shoals.topic()}": 0,
            "shoal_alarm equivocation": 0,
            "shoal_budget_epsilon": 1000,
            "shoal_budget_epsilon_charged": 1,
            "shoal_budget_delta_charged": 0,
            "shoal_restore_duration_seconds_count": 1,
            "shoal_transactions_total given_up bound": 0,
        }
        assert found.items() >= expected.items(), found
        assert found["shoal_contribution_messages_total"] >= 2
        assert found["shoal_seconds_since_tick few"] >= 0
        now = time.time()
        assert now - 60 < found["shoal_event_time_lag_seconds " + shoals.topic()] + 2 * hour <= now
        assert all(now - 60 < found[f"shoal_last_output_timestamp_seconds {stage}"] <= now for stage in STAGES)
        assert found["shoal_transactions_total committed release"] >= 1
        assert found["shoal_transaction_duration_seconds_bucket +Inf release"] >= 1
        assert not [name for name in found if name.startswith("shoal_waits_for")]
        assert sum(value for name, value in found.items() if name.startswith("shoal_releases_total")) == 2
        # and says nothing else: no group, no person, no value
        own = {f"{shoals.app}.{name}" for name in ("contributions", "releases", "activations")}
        assert labels(shoals.port) == {
            "metric": {"few"},
            "reason": {"not-json", "no-value"},
            "partition": {"0", "1"},
            "topic": {shoals.topic(), *own},
            "stage": set(STAGES),
            "result": {"committed", "given_up"},
            "kind": set(KINDS),
            "condition": {"started", "assigned", "restored", "brokers", "audit", "versions", "keys", "transactions"},
        }
        # and who asks from outside is told that nothing holds it up
        asked = shoal("check", shoals.config, "--workers", f"127.0.0.1:{shoals.port}")
        assert asked.returncode == 0, asked.stderr
        assert f"127.0.0.1:{shoals.port}: ready, 4 partitions" in lines(asked.stdout)
        # when another worker is told to use the same port
        other = shoals.worker()
        # then it ends with one line
        assert other.exit_status() == 1
        assert other.last_word == (
            f"shoal: [web]: cannot listen on 127.0.0.1 port {shoals.port} (Address already in use); choose another port"
        )
        # when somebody writes a release of their own, the audit raises an alarm and the worker is not ready any more
        kafka.produce(f"{shoals.app}.releases", [forged(shoals.releases()[0])])
        wait_until(lambda: get(shoals.port, "/health")[0] == 503, 20, lambda: worker.text[-2000:])
        status = json.loads(get(shoals.port, "/health")[1])
        assert (status["ready"], list(status["alarms"])) == (False, ["equivocation"])
        assert samples(shoals.port)["shoal_ready"] == 0
        assert samples(shoals.port)["shoal_alarm equivocation"] == 1
        assert list(json.loads(get(shoals.port, "/readyz")[1])["alarms"]) == ["equivocation"]
        reasons = json.loads(get(shoals.port, "/ready")[1])["reasons"]
        assert [reason.partition(":")[0] for reason in reasons] == ["alarm equivocation"]
        assert get(shoals.port, "/healthz")[0] == 200
        worker.stop()


def forged(release: bytes) -> Any:
    from tests.support.kafka import Record

    fields = orjson.loads(release)
    return Record(f"{fields['metric']}|{fields['group']}".encode(), orjson.dumps(fields | {"value": 0.5}), partition=0)


def test_no_port_is_opened_unless_configured(kafka: Kafka, tmp_path: Path) -> None:
    with Deployment(kafka, tmp_path, sources={"events": 1}, partitions=1) as shoals:
        worker = shoals.worker()
        worker.wait_owns(2)
        listening = Path(f"/proc/{worker.process.pid}/net/tcp").read_text().splitlines()[1:]
        mine = sockets_of(worker.process.pid)
        assert not [line for line in listening if line.split()[3] == "0A" and line.split()[9] in mine]
        worker.stop()


def test_strangers_at_the_port_hold_no_release_up(kafka: Kafka, tmp_path: Path) -> None:
    """Catches a port that uses up the files or the event loop of the stream; tests of the server have no stream."""
    with WithPort(kafka, tmp_path, sources={"events": 1}, partitions=1, idle_after="1s") as shoals, ExitStack() as held:
        # given a worker that may open 256 files, and strangers with more connections than that
        worker = shoals.worker()
        worker.wait_owns(2)
        resource.prlimit(worker.process.pid, resource.RLIMIT_NOFILE, (256, 256))
        for _ in range(400):
            connection = held.enter_context(socket.create_connection(("127.0.0.1", shoals.port), 30))
            connection.sendall(START)
        # when events come
        shoals.produce([orjson.dumps({"who": "p", "at": 3600 * n, "x": 1.5}) for n in range(3)], end=True)
        # then their releases do, a probe is answered, and brokers can be reached
        shoals.wait_releases(3)
        assert get(shoals.port, "/healthz") == (200, '{"live": true}')
        assert get(shoals.port, "/readyz")[0] == 200
        # and whatever else they ask, nothing is an error of the worker's
        answers = refusals(shoals.port)
        assert [name for name, status in answers.items() if status.startswith("5")] == []
        assert answers["a name of elsewhere"] == "403"
        worker.stop()
        assert "brokers_away" not in worker.text
        assert "Traceback" not in worker.text


def sockets_of(pid: int) -> set[str]:
    """Inodes of a process's sockets."""
    names = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    return {name[8:-1] for name in names if name.startswith("socket:[")}


def test_an_address_that_is_not_ours_is_refused() -> None:
    with pytest.raises(PortTaken, match="cannot listen on not.a.host port 80 "):
        serve(SimpleNamespace(), "not.a.host", 80)  # type: ignore[arg-type]
    with pytest.raises(PortTaken, match="cannot listen on 2001:db8::1 port 80 "):
        serve(SimpleNamespace(), "2001:db8::1", 80)  # type: ignore[arg-type]


def test_counts_never_go_back_when_partitions_come_and_go() -> None:
    # given a worker that has processed five events of a partition
    hosting: Host = SimpleNamespace(partitions={}, on_owned=[])  # type: ignore[assignment]
    totals = Totals(hosting)
    partition = StagePartition(BOUND, "events", 0)
    hosting.partitions = {partition: SimpleNamespace(machine=None, events=5)}  # type: ignore[dict-item]
    assert totals.counts() == Counter(events=5, recoveries=1)
    # when it loses it, and gets it back later
    hosting.partitions = {}
    assert totals.counts() == Counter(events=5, recoveries=1)
    hosting.partitions = {partition: SimpleNamespace(machine=None, events=2)}  # type: ignore[dict-item]
    # then what it does now comes on top of what it did then
    assert totals.counts() == Counter(events=7, recoveries=2)


def test_a_repeated_message_is_an_alarm() -> None:
    health = Health()
    health.running = True
    domain: Stages = SimpleNamespace(health=health, discreet=False)  # type: ignore[assignment]
    assert is_ready(domain, Counter())
    assert not is_ready(domain, Counter(repeated_messages=1))
    assert list(health.alarms) == ["repeated_messages"]
