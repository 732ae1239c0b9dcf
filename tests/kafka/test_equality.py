"""Kafka holds the bytes that `shoal run` makes of the same events, whatever the order, the workers and the kills.

A worker that is killed may delay a release. It never loses, repeats or changes one.
"""

import itertools
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from shoal.models.times import iso
from tests.support.backends import mostly
from tests.support.deployment import SHARP_METRIC, STEP_METRICS, Deployment
from tests.support.effort import tries
from tests.support.kafka import Kafka
from tests.support.people import START, visits
from tests.support.tail import Seen, Tail
from tests.support.workers import shoal, tails

KILLS = tries(8)
CITIES = 15_000
METRICS: tuple[dict[str, Any], ...] = (
    {"name": "daily", "every": "1d"},
    {"name": "full", "algorithm": "full", "every": "1h", "epsilon": 400, "users": 40, "failure": 0.5, "withheld": True},
    {"name": "city", "group": "city", "every": "6h", "max_groups": 1, "withheld": True},
    SHARP_METRIC,
    *STEP_METRICS,
    {"name": "spread", "statistic": "variance", "every": "6h", "decay": {"kind": "window", "length": "2d"}},
)


@pytest.mark.parametrize(
    ("partitions", "workers"),
    [(8, 3), *(pytest.param(*shape, marks=pytest.mark.long) for shape in ((1, 1), (1, 3), (8, 1)))],
)
@pytest.mark.usefixtures("backend")
def test_partitions_and_workers_change_no_byte(kafka: Kafka, tmp_path: Path, partitions: int, workers: int) -> None:
    with Deployment(kafka, tmp_path, *METRICS, sources={"events": partitions}, partitions=partitions) as shoals:
        # given two weeks of events, and what `shoal run` makes of them
        events = visits(4_000, step=300)
        shoals.oracle.run(events)
        # when workers share the partitions
        for _ in range(workers):
            shoals.worker()
        shoals.produce(events, end=True)
        # then every release is the same, in Kafka and in SQL, and levels, a clip range and an octave were activated
        shoals.expect_equality()
        activated = {(metric, level) for _, metric, _, _, level, *_ in shoals.oracle.log()[1]}
        assert {("full", 2), ("sharp", 7), ("sharp", 10)} <= activated
        # and the variance was of something; with any key most are clamped to an end of the range
        spreads = [one["value"] for one in map(json.loads, shoals.oracle.releases()) if one["metric"] == "spread"]
        assert len({value and value["variance"] for value in spreads}) > 2
        shoals.stop_all()


@mostly("kernel")
def test_a_release_per_contribution_follows_the_log_of_one_partition(
    kafka: Kafka, tmp_path: Path, backend: str
) -> None:
    metrics = (
        {"name": "each", "every": "contribution"},
        {"name": "each-city", "every": "contribution", "group": "city", "algorithm": "full", "epsilon": 300},
        {"name": "each-sharp", "every": "contribution", "algorithm": "sharp", "epsilon": 400, "users": 12},
        {"name": "hourly"},
    )
    with Deployment(kafka, tmp_path, *metrics, sources={"events": 1}, partitions=3) as shoals:
        events = visits(1_500)
        shoals.oracle.run(events)
        for _ in range(2):
            shoals.worker()
        # when events come while the workers change places
        feeding = shoals.produce_slowly(events, seconds=5)
        shoals.workers[0].wait_owns(1)
        shoals.workers[0].stop()
        feeding.join()
        # then each contribution has its release, as in a file
        shoals.expect_equality()
        shoals.stop_all()


@mostly("kernel")
def test_kills_at_random_moments_change_no_release(kafka: Kafka, tmp_path: Path, backend: str) -> None:
    # given metrics with several cadences and algorithms, and a producer that sends events until the last kill
    metrics: tuple[dict[str, Any], ...] = (
        {"name": "daily", "every": "1d"},
        {"name": "full", "algorithm": "full", "every": "1h", "epsilon": 400, "users": 40, "failure": 0.5},
        {"name": "city", "group": "city", "every": "6h", "lateness": "1h"},
        SHARP_METRIC,
        *STEP_METRICS,
    )
    with Deployment(kafka, tmp_path, *metrics, sources={"events": 8}, partitions=4) as shoals:
        events = visits(600 * KILLS, step=200)
        shoals.oracle.run(events)
        feeding = shoals.produce_slowly(events, seconds=1.8 * KILLS)
        # and three workers: two with a name, whose places are free at once, and one without
        names = ["a", "b", None]
        workers = [shoals.worker(name) for name in names]
        chance = random.Random(20)
        # when they are killed, one after the other: busy, starting, taking over; and come back at once or later
        for number in range(KILLS):
            index = 2 if number % 7 == 6 else number % 2  # one starts while the other dies
            if chance.random() < 0.8:
                workers[index].wait_owns()
            time.sleep(chance.choice([0.0, chance.uniform(0, 0.2), chance.uniform(0, 1)]))
            workers[index].kill()
            if chance.random() < 0.4:
                time.sleep(chance.uniform(0, 1.5))
            workers[index] = shoals.worker(names[index])
        feeding.join()
        # then the releases are those of a run without Kafka
        shoals.expect_equality(150)
        assert shoals.oracle.log()[1]
        shoals.stop_all()


class Marksman:
    """Kills a worker when the log shows the moment, and not a moment later."""

    def __init__(self, shoals: Deployment, tail: Tail) -> None:
        self.shoals, self.tail, self.hits = shoals, tail, 0
        self.worker = shoals.worker("one")

    def shoot(self, moment: Callable[[Seen], bool], in_time: Callable[[], bool]) -> bool:
        """Freeze at the moment; kill if it was in time, else let go."""
        self.tail.wait_for(moment, else_say=lambda: f"after {self.hits} hits\n" + tails(self.shoals.workers))
        self.worker.freeze()
        if not in_time():
            self.worker.thaw()
            return False
        self.worker.kill()
        self.hits += 1
        self.worker = self.shoals.worker("one")
        return True


def test_kills_between_a_clock_record_and_the_close_of_its_tick_change_no_release(kafka: Kafka, tmp_path: Path) -> None:
    often = {"group": "city", "every": "10m"}  # short ticks: three are met between a clock record and the close
    with Deployment(kafka, tmp_path, often, sources={"events": 1}, partitions=1) as shoals:
        # given one partition of everything, so that a clock record alone says which ticks are over
        events = visits(4_000, people=400, step=30, cities=[f"c{n}" for n in range(50)])
        shoals.oracle.run(events)
        expected = [orjson.loads(release)["at"] for release in shoals.oracle.releases()]
        shoals.make_topics()
        said = [""]
        struck: set[int] = set()  # how many releases were visible

        def clock_record(seen: Seen) -> bool:
            """One that came further than all before it; an idle source repeats its own."""
            watermarks = orjson.loads(seen.value or b"{}").get("m") or {}
            further = [at for at in map(iso, watermarks.values()) if at > said[-1]]
            said.extend(further)
            return bool(further)

        def open_tick() -> bool:
            over = sum(1 for at in expected if str(at) <= said[-1])
            count = len(shoals.releases())
            if count >= over or count in struck:
                return False
            struck.add(count)
            return True

        with Tail(kafka, f"{shoals.app}.contributions") as tail:
            # when the worker dies, at three different places, with a clock in the log and its tick not closed
            marksman = Marksman(shoals, tail)
            marksman.worker.wait_owns(2)
            chunks = iter([events[first : first + 100] for first in range(0, len(events), 100)])
            for chunk in chunks:
                shoals.produce(chunk)
                if marksman.shoot(clock_record, open_tick) and marksman.hits == 3:
                    break
            assert marksman.hits == 3, "the close was never seen open; send smaller chunks"
            shoals.produce([event for chunk in chunks for event in chunk], end=True)
        # then its successor closes the tick, with the same bytes
        shoals.expect_equality()
        shoals.stop_all()


@pytest.mark.long
def test_kills_inside_a_long_close_change_no_release(kafka: Kafka, tmp_path: Path) -> None:
    # given ticks with 15,000 groups each: closing one takes several transactions
    with Deployment(kafka, tmp_path, {"group": "city"}, sources={"events": 1}, partitions=1) as shoals:
        events = [
            orjson.dumps({"who": f"p{tick}-{n}", "at": START + 3600 * tick, "x": n % 90, "city": f"c{n}"})
            for tick in range(2)
            for n in range(CITIES)
        ]
        shoals.oracle.run(events)
        shoals.make_topics()
        parts: list[int] = [0]
        looked = itertools.count(1)

        def further_part(seen: Seen) -> bool:
            return next(looked) > parts[-1]

        def not_all() -> bool:
            parts.append(len(shoals.releases()))
            return parts[-1] % CITIES != 0

        with Tail(kafka, f"{shoals.app}.releases") as tail:
            # when the worker dies, three times, after it has published a further part of a tick
            shoals.produce(events, end=True)
            marksman = Marksman(shoals, tail)
            while marksman.hits < 3:
                marksman.shoot(further_part, not_all)
        # then the rest follows, each once, in its place
        shoals.expect_equality()
        assert len({part for part in parts if part % CITIES}) == 3, parts
        shoals.stop_all()


FILE_METRICS = ({"name": "city", "group": "city", "every": "6h"}, {"name": "hourly", "every": "1h"})


def run_file(shoals: Deployment, events: list[bytes], *options: str) -> tuple[int, str, int]:
    """`shoal run` of the deployment's own app: status, what it says, and how many releases it shows."""
    (shoals.folder / "in.jsonl").write_bytes(b"".join(event + b"\n" for event in events))
    said = shoal("run", shoals.config, "--input", "in.jsonl", "--output", "out.jsonl", *options, cwd=shoals.folder)
    return said.returncode, said.stderr, len((shoals.folder / "out.jsonl").read_bytes().splitlines())


def test_workers_and_file_runs_never_share_a_version(kafka: Kafka, tmp_path: Path) -> None:
    events = visits(200, step=300)
    with Deployment(kafka, tmp_path, *FILE_METRICS, sources={"events": 2}, partitions=3) as shoals:
        # given the releases of a file
        status, said, shown = run_file(shoals, events[:100], "--open")
        assert (status, shown > 5) == (0, True), said
        # when a worker comes with its versions, it ends, and says how the file gets into the topic
        ended = shoal("worker", shoals.config, cwd=shoals.folder)
        assert (ended.returncode, "belongs to file runs" in ended.stderr) == (1, True), ended.stderr
        assert "send the file into the topic with shoal produce, under a version of its own" in ended.stderr
        # then the same events, sent under raised versions, have the releases of one run, with noise of its own
        shoals.metrics = [metric | {"version": 2} for metric in shoals.metrics]
        shoals.write_config()
        shoals.oracle.run(events)
        shoals.produce(events, end=True)
        shoals.worker()
        expected = shoals.oracle.releases()
        shoals.wait_releases(len(expected))
        assert shoals.releases() == expected
        # and from then on no file runs over the topic
        status, said, _ = run_file(shoals, events)
        assert (status, "shoal audit replay --from events computes it again" in said) == (1, True), said
        shoals.stop_all()
