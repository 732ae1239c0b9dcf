"""Faust's tables show the state of a running worker: the program of docs/guides/inside-a-worker.md is asked."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from tests.support.backends import mostly
from tests.support.deployment import Deployment
from tests.support.kafka import Kafka
from tests.support.workers import PATIENCE, wait_until

ROOT = Path(__file__).parents[3]
PROGRAM = re.compile(r"^```python$(.*?)^```$", re.MULTILINE | re.DOTALL)
METRICS: tuple[dict[str, Any], ...] = (
    {"name": "mean", "algorithm": "multi-tree", "prior": 50, "group": "city", "max_per_group": 4,
     "max_groups": 2},
    {"name": "plain", "algorithm": "full", "max_contributions": 4},
    {"name": "sum", "statistic": "sum", "every": "1h", "max_contributions": 9, "group": "city",
     "max_groups": 2},
    {"name": "slots", "statistic": "mean", "slot": "1h", "unit": "user", "max_slots": 2, "group": "city",
     "max_per_group": 4, "algorithm": "array-averaging"},
)  # fmt: skip


class Asked:
    """The program of the documents, and a log of what it says beside its answers."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path, app: str, topic: str) -> None:
        self.process, self.log = process, log
        self.tables = {"bound": f"{app}.bound.{topic}.changelog", "release": f"{app}.release.changelog"}

    def __call__(self, stage: str, *key: str | int | None) -> Any:
        """What the table of a stage has under a key; None for a KeyError."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([self.tables[stage], *key]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.log.read_text()[-3000:]
        return json.loads(line)


@contextmanager
def asked(shoals: Deployment) -> Iterator[Asked]:
    """The program, running as a worker of the deployment; it is told to stop, and ends well."""
    found = PROGRAM.search((ROOT / "docs/guides/inside-a-worker.md").read_text())
    assert found is not None
    log = shoals.folder / "program.log"
    with log.open("w") as errors:
        command = [sys.executable, "-c", found[1], str(shoals.config)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
    with process:
        try:
            yield Asked(process, log, shoals.app, shoals.topic())
            process.terminate()
            assert process.wait(30 * PATIENCE) == 0, log.read_text()[-3000:]
        finally:
            process.kill()


@mostly("kernel")
def test_tables_show_what_a_running_worker_holds(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": 2}, partitions=2) as shoals:
        # given a worker, and events of two days: ann's one of the first day and three of the second, and one of bob's
        hour, day = 3600, 86400
        events = [("ann", 0, "A"), ("ann", day, "A"), ("ann", day, "B"), ("ann", day + 60, "A"), ("bob", day, "B")]
        with asked(shoals) as ask:
            shoals.produce([orjson.dumps({"who": u, "at": at, "x": 40, "city": c}) for u, at, c in events])
            shoals.end(range(2), day + 2 * hour)
            wait_until(lambda: (ask("release", "mean", "B") or {}).get("seq"), 90, ask.log.read_text)
            # then its tables have their samples, of each metric as its unit and groups have it
            counts = {
                ("mean", "ann", "A"): 3, ("mean", "ann", "B"): 1, ("mean", "bob", "B"): 1, ("mean", "bob", "A"): None,
                ("plain", "ann"): 4, ("plain", "bob"): 1, ("plain", "cid"): None, ("plain", "ann", "A"): None,
                ("sum", "ann"): 4, ("sum", "bob"): 1, ("sum", "cid"): None, ("sum", "ann", "A"): None,
                ("none", "ann"): None, ("plain",): None,
            }  # fmt: skip
            assert {key: ask("bound", *key) for key in counts} == counts
            # and what has been released of a group, and what its levels hold: blocks of one, one and two samples
            assert ask("release", "mean", "A")["seq"] == 2
            assert ask("release", "plain", None)["seq"] == 2
            assert ask("release", "plain") == ask("release", "plain", None)
            levels = [ask("release", "mean", "A", level) for level in range(3)]
            assert [level["elements"] for level in levels] == [1, 1, 0]
            assert levels[0]["total"] > 0
            assert [ask("release", "plain", None, level)["waiting"] for level in range(3)] == [2, 1, 1]
            assert ask("release", "plain", None, 3) is None
            assert ask("release", "sum", "A", 0) is None
            assert ask("release", "mean", "C") is None
            # and they follow the state: another event, another sample
            shoals.produce([orjson.dumps({"who": "bob", "at": day + 3 * hour, "x": 40, "city": "B"})])
            wait_until(lambda: ask("bound", "plain", "bob") == 2, 60, ask.log.read_text)
