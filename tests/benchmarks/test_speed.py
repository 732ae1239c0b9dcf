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
from benchmarks.speed import environments, page, picture, subjects, summary, throughput, watching
from benchmarks.workload import CONFIG
from shoal.agents.broker import jars
from shoal.agents.broker.jars import VERSION

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
    with pytest.raises(watching.FailedError, match="not done in time"):
        watching.Watched(os.getpid()).run(
            program(tmp_path / "waits.py", "import time\ntime.sleep(60)"), tmp_path / "log", 0.2
        )


def test_everybody_has_the_same_job(capfd: pytest.CaptureFixture[str]) -> None:
    assert f"max_contributions = {CAP}" in CONFIG
    assert f"range = [{LEAST:.0f}, {MOST:.0f}]" in CONFIG
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


@pytest.mark.slow  # makes an environment
def test_what_cannot_be_installed_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "quix.txt").write_text("shoal-has-no-such-package @ file:///nowhere\n")
    monkeypatch.setattr(environments, "PEERS", tmp_path / "peers")
    monkeypatch.setattr(environments, "HOME", tmp_path / "bench")
    with pytest.raises(environments.MissingError, match="nowhere"):
        environments.python_of("quix")
    assert not (tmp_path / "bench" / "quix" / environments.STAMP).exists()


@pytest.mark.slow  # makes two
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


def test_all_pages_say_what_the_last_full_run_found() -> None:
    assert (figures.RESULTS / "speed.md").read_text() == page.report(KEPT)
    guide = page.GUIDE.read_text()
    assert page.within(guide, page.block(KEPT)) == guide
    assert json.dumps(picture.Bars(KEPT).data()["bars"][0]["label"]) in page.PICTURE.read_text().replace("&quot;", '"')
