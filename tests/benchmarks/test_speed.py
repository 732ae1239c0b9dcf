"""What `make bench` makes of its measurements, and that it keeps its word about what it is given."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import figures
from benchmarks.peers.tally import CAP, LEAST, MOST, Tally
from benchmarks.speed import (
    environments,
    files,
    growth,
    latency,
    page,
    picture,
    replay,
    subjects,
    summary,
    throughput,
    watching,
    workers,
)
from benchmarks.workload import METRIC, Workload
from shoal.agents.broker import jars
from shoal.agents.broker.jars import VERSION
from tests.support.cover import FULL

KEPT = page.kept()


def run(events: int, seconds: float, cpu: float) -> dict[str, Any]:
    """A run of two stretches, of which the last took a quarter of the time."""
    late = {"events": events // 2, "seconds": seconds / 4, "cpu": cpu / 4}
    early = {"events": events // 2, "seconds": 3 * seconds / 4, "cpu": 3 * cpu / 4}
    costs = {"broker_cpu": 0.5, "others": 0.1, "load": 1.0, "peak_mb": 100.0}
    return {"events": events, "seconds": seconds, "cpu": cpu, "stretches": [early, late], **costs}


@pytest.fixture
def data() -> dict[str, Any]:
    """Two rounds; in the second one Kafka Streams failed. Quix could not be installed."""
    subject = {"events": 1000, "versions": {}}
    return {
        "topic": 1000, "users": 10, "partitions": 4,
        "subjects": {
            "raw": subject | {"label": "raw loop", "kind": subjects.RAW},
            "kernel-whole-full": subject | {"label": "shoal, kernel: whole, `full`", "kind": subjects.KERNEL_LANE},
            "streams": subject | {"label": "Kafka Streams", "kind": subjects.PEER, "versions": {"kafka-streams": "1"}},
        },
        "missing": {"Quix": "no network"},
        "rounds": [
            {"raw": run(1000, 1, 1), "kernel-whole-full": run(1000, 2, 0.5), "streams": run(1000, 8, 8)},
            {"raw": run(1000, 2, 2), "kernel-whole-full": run(1000, 2, 4), "streams": {"failed": "it is gone"}},
        ],
    }  # fmt: skip


def test_ratios_are_of_one_round_and_a_failed_run_counts_for_nothing(data: dict[str, Any]) -> None:
    rounds = data["rounds"]
    assert summary.ratio(rounds, "kernel-whole-full", "raw", summary.by_cpu) == (1.25, 0.5, 2.0)
    assert summary.ratio(rounds, "kernel-whole-full", "streams", summary.by_cpu) == (16, 16, 16)
    assert summary.spread(rounds, "quix", summary.by_cpu) is None


def test_the_table_has_everybody_and_says_what_failed_and_what_is_missing(data: dict[str, Any]) -> None:
    said = page.throughput(data)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in said.splitlines() if line[:1] == "|"]
    assert [row[0] for row in rows[2:]] == [
        "raw loop", "shoal, kernel: whole, `full`", "Kafka Streams", "the same, warm: its last quarter",
    ]  # fmt: skip
    assert rows[3][1:4] == ["0.50", "1.12 (0.25–2.00)", "1.25 (0.50–2.00)"]
    assert rows[4][4] == "0.50"  # of itself, warm
    assert rows[5][2:5] == ["0.25", "0.25", "1"]
    assert "* Kafka Streams: failed in a round: it is gone" in said
    assert "* Quix: missing: no network" in said
    assert "Kafka Streams: kafka-streams 1." in said


def test_a_run_goes_from_its_first_mark_to_its_last() -> None:
    cost = {"at": 0.0, "broker": 1.0, "own": 0.0, "machine": 10.0}
    end = {"at": 10.0, "broker": 3.0, "own": 1.0, "machine": 30.0}
    marks = [
        {"events": 1, "seconds": 5.0, "cpu": 1.0, "cost": cost, "mb": 10.0},
        {"events": 6, "seconds": 9.0, "cpu": 3.0, "cost": cost, "mb": 15.0},
        {"events": 11, "seconds": 12.0, "cpu": 7.0, "cost": cost, "mb": 16.0},
        {"events": 11, "seconds": 15.0, "cpu": 8.0, "cost": end, "mb": 20.0, "done": True, "peak_mb": 25.0, "users": 4},
    ]
    found = watching.summed(marks)
    assert (found["events"], found["seconds"], found["cpu"], found["broker_cpu"]) == (10, 10.0, 7.0, 2.0)
    assert (found["first_mb"], found["last_mb"], found["peak_mb"], found["users"]) == (10.0, 20.0, 25.0, 4)
    assert found["others"] == 1.0  # of 20 seconds of the machine, 2 were the broker's, 1 ours, and 7 the worker's
    assert summary.warm(found) == {"events": 5, "seconds": 3.0, "cpu": 4.0}


def program(path: Path, text: str) -> list[str]:
    path.write_text(text)
    return [sys.executable, str(path)]


SAYS = 'import json\nfor line in {lines}: print(json.dumps(line | {{"seconds": 1.0, "cpu": 0.5}}), flush=True)\n'


def test_a_program_is_watched_until_it_says_that_it_is_done(tmp_path: Path) -> None:
    lines = [{"events": 1}, {"events": 5, "done": True, "users": 3}]
    found = watching.Watched(os.getpid()).run(
        program(tmp_path / "done.py", SAYS.format(lines=lines)), tmp_path / "log", 30.0
    )
    assert (found["events"], found["users"]) == (4, 3)
    assert found["peak_mb"] >= found["last_mb"] >= 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SAYS.format(lines=[{"events": 1}]) + "raise SystemExit('out of order')", "out of order"),
        ("import os\nos._exit(7)", "ended with 7"),
    ],
)
def test_a_program_that_ends_early_has_failed_and_says_why(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(watching.FailedError, match=reason):
        watching.Watched(os.getpid()).run(program(tmp_path / "ends.py", text), tmp_path / "log", 30.0)


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    """With full effort also one that has to be killed, 10 s later."""
    seconds = 60 if FULL else 1
    with pytest.raises(watching.FailedError, match="not done in time"):
        watching.Watched(os.getpid()).run(
            program(tmp_path / "waits.py", f"import time\ntime.sleep({seconds})"), tmp_path / "log", 0.2
        )


def test_everybody_has_the_same_job(capfd: pytest.CaptureFixture[str]) -> None:
    assert f"max_contributions = {CAP}" in METRIC
    assert f"range = [{LEAST:.0f}, {MOST:.0f}]" in METRIC
    streams = (environments.PEERS / f"{environments.MAIN}.java").read_text()
    assert f"int CAP = {CAP};" in streams
    assert f"LEAST = {LEAST:.0f}, MOST = {MOST:.0f};" in streams
    tally, state = Tally(8), (0, 0.0)
    for value in (-5.0, 50.0, 200.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        state = tally.add(*state, value) or state
    tally.done()
    assert state == (8, 155.0)
    said = [json.loads(line) for line in capfd.readouterr().out.splitlines() if line]
    assert [mark["events"] for mark in said] == [1, 2, 4, 6, 8, 8]
    assert (said[-1]["counted"], said[-1]["total"], said[-1]["done"]) == (8, 155.0, True)


def test_what_peers_consist_of_is_pinned() -> None:
    for peer in subjects.PEERS:
        assert set(environments.versions_of(peer.lock, peer.packages)) == set(peer.packages)
    for lock in environments.PEERS.glob("*.txt"):
        assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lock.read_text().splitlines())
    streams = jars.read_lock(environments.PEERS / "kafka-streams.lock")
    assert {jar.version for jar in streams if jar.group == "org.apache.kafka"} == {VERSION}  # that of the broker


@pytest.mark.long  # makes an environment, for `make bench` alone
def test_what_cannot_be_installed_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "quix.txt").write_text("shoal-has-no-such-package @ file:///nowhere\n")
    monkeypatch.setattr(environments, "PEERS", tmp_path / "peers")
    monkeypatch.setattr(environments, "HOME", tmp_path / "bench")
    with pytest.raises(environments.MissingError, match="nowhere"):
        environments.python_of("quix")
    assert not (tmp_path / "bench" / "quix" / environments.STAMP).exists()


@pytest.mark.long  # makes two environments, for `make bench` alone
def test_what_is_installed_is_not_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "nothing.txt").write_text("# no packages\n")
    monkeypatch.setattr(environments, "PEERS", tmp_path / "peers")
    monkeypatch.setattr(environments, "HOME", tmp_path / "bench")
    (python,) = environments.python_of("nothing")
    assert subprocess.run([python, "-c", "pass"], check=False).returncode == 0
    Path(python).unlink()
    assert environments.python_of("nothing") == [python]
    assert not Path(python).exists()
    (tmp_path / "peers" / "nothing.txt").write_text("# another lock\n")
    environments.python_of("nothing")
    assert Path(python).exists()


def test_who_comes_to_another_result_has_failed() -> None:
    found = {"raw": {"events": 5, "counted": 5}, "a": {"events": 5, "counted": 4}, "b": {"events": 3, "counted": 3}}
    throughput._compare(found, "raw")
    assert [key for key, one in found.items() if "failed" in one] == ["a"]


GROWN = {
    "again": 50,
    "runs": [
        {
            "lane": "kernel", "users": 100,
            "worker": {"stretches": [{"events": 100, "cpu": 1e-3}, {"events": 50, "cpu": 1e-4}]},
            "restored": {"events": 100, "seconds": 0.5, "cpu": 0.25, "first_mb": 1, "last_mb": 2, "peak_mb": 3},
        },
        {"lane": "twin", "users": 100, "failed": "out of memory"},
    ],
}  # fmt: skip


def test_growth_is_told_by_user() -> None:
    said = growth.tables(GROWN)
    assert "| kernel | 100 | 10.0 | 2.00 | 0.20 | 0.40 | 10,486 | 20,972 |" in said
    assert "| twin | 100 | failed: out of memory |" in said
    assert growth.short(GROWN) == [
        "With 100 users, kernel: 0.20 thousand users a second restored, 10,486 bytes a user in memory."
    ]


def test_what_workers_add_is_told_by_round() -> None:
    def runs(one: float, two: float) -> list[dict[str, Any]]:
        about = {"lane": "twin", "total": 4000, "events": [4000], "cpu": [1.0], "broker_cpu": 0.5}
        return [about | {"workers": 1, "seconds": one}, about | {"workers": 2, "seconds": two}]

    rounds = [runs(2, 1), runs(3, 2), [runs(1, 1)[0], {"lane": "twin", "workers": 2, "failed": "it ended"}]]
    data = {"partitions": 4, "cores": 2, "rounds": rounds}
    assert "| twin | 2 | 3.00 (2.00–4.00) | 1.75 (1.50–2.00) | 4 | 1.0 | 0.5 |" in workers.tables(data)
    assert workers.short(data) == [
        "Two workers on 2 cores, broker included, twin: 1.75 (1.50–2.00) times one (`naive`)."
    ]


def test_latency_is_told_by_load() -> None:
    run = {
        "algorithm": "full",
        "sustained": 9000.0,
        "rate": 4500.0,
        "p50": 0.1,
        "p99": 0.25,
        "max": 0.5,
        "releases": 70,
    }
    data = {"lane": "kernel", "seconds": 20.0, "runs": [run | {"load": 0.5}, {"algorithm": "naive", "failed": "no"}]}
    assert "| `full` | 50 % of 9,000/s | 4,500 | 0.100 | 0.250 | 0.500 | 70 |" in latency.tables(data)
    assert "| `naive` | failed: no |" in latency.tables(data)
    assert latency.short(data)[0].endswith(": `full` at 4,500 events/s 0.10 s (p50), 0.25 s (p99).")


def test_file_runs_are_told_by_lane_and_algorithm() -> None:
    run = {"by_wall": 5000.0, "by_cpu": 6000.0, "seconds": 2.5, "least_mb": 100.0, "most_mb": 120.0}
    sizes = {"twin": [200_000, 2_000_000]}
    data = {"sizes": sizes, "users": 10, "found": {"twin, `full`": [run, run | {"by_wall": 7000.0}]}}
    assert "| twin, `full` | 2 | 6.00 (5.00–7.00) | 6.00 | 2.50 | 120 |" in files.tables(data)
    assert "| twin, `full` | 0.2 | – | – | – | 100 |" in files.tables(data)
    assert files.short(data) == ["`shoal run`, k events/s: twin, `full` 6.00 (5.00–7.00)."]


def test_a_file_run_that_takes_hardly_longer_than_a_short_one_has_no_rate() -> None:
    # given further events that take less than the scatter of a start, or less than nothing
    assert [files.rate_of(200_000, 1.0, longer) for longer in (0.8, 1.0, 1.19)] == [None] * 3
    # then only those that clearly take longer are a speed
    assert files.rate_of(200_000, 1.0, 1.25) == 800_000
    # and a round without one is left out, or a dash where there is no other
    unknown = {"by_wall": None, "by_cpu": None, "seconds": 1.0, "least_mb": 100.0, "most_mb": 120.0}
    data: dict[str, Any] = {
        "sizes": {"kernel": [200_000, 2_000_000]},
        "users": 10,
        "found": {"kernel, `full`": [unknown]},
    }
    assert "| kernel, `full` | 2 | – | – | 1.00 | 120 |" in files.tables(data)
    assert files.short(data) == ["`shoal run`, k events/s: kernel, `full` –."]
    data["found"]["kernel, `full`"].append(unknown | {"by_wall": 5000.0})
    assert "| kernel, `full` | 2 | 5.00 | – | 1.00 | 120 |" in files.tables(data)


def test_replays_are_told_without_their_start_and_the_start_beside_them() -> None:
    start = {"seconds": 2.0, "cpu": 1.0, "peak_mb": 80.0}
    runs = [replay.without(start, {"seconds": 4.0, "cpu": cpu, "peak_mb": 100.0}, 8000) for cpu in (2.0, 3.0)]
    data = {
        "events": 8000, "users": 10, "partitions": 4, "starts": {"events, twin": [start]},
        "found": {"events, twin, `full`": runs},
    }  # fmt: skip
    assert "| events, twin: start alone | – | – | 2.00 | 1.00 | 80.0 |" in replay.tables(data)
    assert "| events, twin, `full` | 4.00 | 6.00 (4.00–8.00) | 4.00 | 2.50 (2.00–3.00) | 100 |" in replay.tables(data)
    assert replay.short(data) == ["`shoal audit replay` from events, twin, k events/CPU-s: `full` 6.00 (4.00–8.00)."]


def test_users_without_a_skew_all_come_once_and_then_at_random() -> None:
    events = [user for chunk in Workload(50_000, 30_000, skewed=False).chunks() for user, _ in chunk]
    assert len(set(events[:30_000])) == 30_000
    assert 12_000 < len(set(events[30_000:])) < 18_000


def test_all_pages_say_what_the_last_full_run_found() -> None:
    assert (figures.RESULTS / "speed.md").read_text() == page.report(KEPT)
    guide = page.GUIDE.read_text()
    assert figures.within(guide, page.COMMAND, page.block(KEPT)) == guide
    assert json.dumps(picture.Bars(KEPT).data()["bars"][0]["label"]) in page.PICTURE.read_text().replace("&quot;", '"')
