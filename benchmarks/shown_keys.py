"""Many keys where presence is protected: what a tick takes, and how large shown keys and silent candidates are.

    python -m benchmarks.shown_keys [--quick] [--out DIR]

Measures a few minutes for each part, in processes of their own; a full run writes benchmarks/results/shown-keys.json
and shown-keys.md.
"""

import argparse
import gc
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import figures
from benchmarks.page import Page, number, verdict
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.process_settings import tune_garbage_collector
from shoal.agents.worker.outbox import ReleaseMachine
from shoal.models.config.file import Config
from shoal.models.records import Message
from shoal.stream.topic import plan_topic

HOUR = 3_600_000_000
A_MESSAGE = 10_000  # keys in a message
ENOUGH = 1000  # units with which a key is shown at once
MOST_SECONDS, MOST_PART, MOST_BYTES, MOST_CANDIDATE = 60, 0.05, 4096, 200
SAMPLES, NEWCOMERS = 0, 1  # cells of a partial
TITLE = "Many keys, where presence is protected"
RULES = f"""\
Measured with `make bench-keys`; the figures are those of [shown-keys.json](shown-keys.json). One metric, a mean of
every hour with a horizon of a year, relation add-remove, whose keys nobody declared. The release stage of a worker
closes its ticks: it reads messages, and makes the outboxes that a worker sends, with releases and activations as bytes
and the changelog's entries. Kafka and SQL are not part of it. Keys are shown by {ENOUGH} units that come in the first
tick. Then one unit comes to each candidate, and no more. Seconds are of processor time on one core; bytes are what the
process grew by, for each key.

*Silent*: nothing came in the tick; *busy*: something came to every shown key. Every 12th tick of this metric the way in
a key's trees enters a node above the leaves, every 144th one above these; since all keys were shown in the same tick,
all enter in the same one. The tick that shows the keys draws their trees for 1,728 ticks to come. Keys that are shown
one after the other share all this out among ticks; keys that are declared, and a worker that starts, do not.

What the process grew by includes what it keeps of messages: all that comes in a tick waits until it is closed, here of
all keys, and of all candidates, in one. The objects of a shown key are 3.0 KB of it (`tracemalloc`).
`python -m benchmarks.selection` measures a million candidates alone: 184 bytes each, and 0.02 ms in a silent tick.
"""


@dataclass(frozen=True)
class Tick:
    """One closing."""

    tick: int
    is_busy: bool
    has_candidates: bool
    seconds: float
    releases: int
    bytes: int  # of releases and changelog


@dataclass(frozen=True)
class Part:
    """One process."""

    keys: int
    candidates: int
    ticks: Sequence[Tick]
    key_bytes: float
    candidate_bytes: float
    arrival: float  # seconds to read and consider all candidates


def configuration() -> Config:
    """One metric."""
    metric = {
        "name": "m", "topic": "t", "user": "u", "time": "at", "statistic": "mean", "relation": "add-remove",
        "every": "1h", "epsilon": "1", "delta": "0.000000001", "max_contributions": 4, "group": "g",
        "value": "x", "range": (0, 200), "grid": 1 << 20, "start": "1970-01-01", "life": "365d",
    }  # fmt: skip
    return Config.model_validate({"privacy": {"epsilon": "99", "delta": "0.001"}, "metric": [metric]})


class Line(NamedTuple):
    """A message as Kafka hands it out."""

    offset: int
    value: bytes
    key: None = None
    timestamp: int = 0
    headers: tuple[tuple[str, bytes], ...] = ()


class Stage:
    """The release stage of one partition, fed by one source."""

    def __init__(self) -> None:
        config = configuration()
        plan = plan_topic(config, "t", bytes(32), source_partitions=1, contributions_partitions=1)
        self._machine = ReleaseMachine(KafkaSettings("", "bench"), [plan], 0, idle_after=30_000_000)
        self._machine.start(0)
        self._clock = plan.clocks[0].label
        self._sent = 0

    def send(self, keys: Iterator[str], tick: int, flat: list[int]) -> None:
        """Let the same come to all these keys in a tick."""
        partials = {f"m/1|{key}": [(tick * HOUR, flat)] for key in keys}
        self._receive(partials, None)

    def _receive(self, partials: dict[str, Any], mark: int | None) -> None:
        self._sent += 1
        marks: dict[str, int | None] | None = None if mark is None else {self._clock: mark}
        raw = Message("t", 0, self._sent, self._sent, self._sent, watermarks=marks, partials=partials).encode()
        self._machine.process([Line(self._sent, raw)], self._sent + 1)

    def work(self) -> tuple[int, int]:
        """Work until nothing is due; releases and bytes that were made."""
        releases = size = 0
        while self._machine.pending() or self._machine.has_complete:
            self._machine.work(lambda: self._machine.has_complete)
            while (outbox := self._machine.outbox()) is not None:
                size += sum(len(name) + len(value or b"") for name, value in outbox.changelog)
                for (topic, _), records in outbox.records.items():
                    releases += len(records) if topic.endswith("releases") else 0
                    size += sum(len(value) for _, value, _ in records)
                del outbox
        return releases, size

    def close(self, tick: int, *, is_busy: bool = False, has_candidates: bool = False) -> Tick:
        """Let the clock pass a tick's end."""
        self._receive({}, (tick + 1) * HOUR)
        begun = time.process_time()
        releases, size = self.work()
        return Tick(tick, is_busy, has_candidates, time.process_time() - begun, releases, size)


def resident() -> int:
    """The bytes that the process has in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def pieces(prefix: str, count: int) -> Iterator[Iterator[str]]:
    """Names in pieces of a message's size."""
    for first in range(0, count, A_MESSAGE):
        yield (f"{prefix}-{name:08}" for name in range(first, min(first + A_MESSAGE, count)))


def measure(keys: int, candidates: int, ticks: int, busy: int) -> Part:
    """Show the keys, close so many ticks, let the candidates come and close the same number once more."""
    warm(300, ticks + busy + 4)  # the caches of error bars are not part of a key
    stage, before = Stage(), resident()
    for names in pieces("shown", keys):
        stage.send(names, 0, [SAMPLES, 2 * ENOUGH, ENOUGH << 20, NEWCOMERS, ENOUGH, ENOUGH])
        stage.work()
    found = [stage.close(0)]
    if found[0].releases != keys:
        raise SystemExit(f"{found[0].releases} of {keys} keys were shown")
    found += [stage.close(tick) for tick in range(1, ticks + 1)]
    key_bytes, tick = (resident() - before) / keys, ticks + 1
    for tick in range(ticks + 1, ticks + busy + 1):
        for names in pieces("shown", keys):
            stage.send(names, tick, [SAMPLES, 3, 3 << 19])
            stage.work()
        found.append(stage.close(tick, is_busy=True))
    if not candidates:
        return Part(keys, 0, found, key_bytes, 0.0, 0.0)
    before, begun = resident(), time.process_time()
    for names in pieces("silent", candidates):
        stage.send(names, tick + 1, [SAMPLES, 1, 1 << 19, NEWCOMERS, 1, 1])
        stage.work()
    came = stage.close(tick + 1)
    arrival = time.process_time() - begun - found[1].seconds
    found.append(Tick(came.tick, False, True, came.seconds, came.releases, came.bytes))
    grown = (resident() - before) / candidates
    found += [stage.close(tick + 2 + more, has_candidates=True) for more in range(ticks)]
    return Part(keys, candidates, found, key_bytes, grown, arrival)


def warm(keys: int, ticks: int) -> None:
    """Fill what all keys share."""
    stage = Stage()
    stage.send((f"k{key}" for key in range(keys)), 0, [SAMPLES, ENOUGH, ENOUGH, NEWCOMERS, ENOUGH, ENOUGH])
    for tick in range(ticks):
        stage.close(tick)


# -------------------------------------------------------------------- what is told


def silent(part: Part, *, has_candidates: bool) -> list[float]:
    """Seconds of silent ticks that are not the first, ascending."""
    found = (one.seconds for one in part.ticks[1:] if not one.is_busy and one.has_candidates == has_candidates)
    return sorted(found)


def tables(many: Part, long: Part) -> str:
    """Targets and ticks."""
    later = [one for one in many.ticks if one.tick]
    worst = max(one.seconds for one in later)
    enters = max(one.seconds for one in long.ticks[1:]) / long.keys * many.keys
    without, beside = (silent(many, has_candidates=which) for which in (False, True))
    alone = without[len(without) // 2]
    part = max(0.0, beside[0] / without[0] - 1)  # of the least, for other load only adds
    targets = [
        ("a tick, the median", f"at most {MOST_SECONDS} s", f"{alone:.1f} s", verdict(alone <= MOST_SECONDS)),
        ("a tick, the slowest of these", f"at most {MOST_SECONDS} s", f"{worst:.1f} s", verdict(worst <= MOST_SECONDS)),
        (
            f"a tick, the slowest of {len(long.ticks) - 1}, from {long.keys:,} keys", f"at most {MOST_SECONDS} s",
            f"{enters:.0f} s", verdict(enters <= MOST_SECONDS),
        ),
        (
            f"{many.candidates:,} silent candidates, of the fastest tick", f"at most {MOST_PART:.0%} of a tick",
            f"{part:.1%}", verdict(part <= MOST_PART),
        ),
        (
            "a silent candidate", f"at most {MOST_CANDIDATE} bytes", f"{many.candidate_bytes:.0f} bytes",
            verdict(many.candidate_bytes <= MOST_CANDIDATE),
        ),
        (
            "a shown key", f"at most {MOST_BYTES:,} bytes", f"{many.key_bytes:,.0f} bytes",
            verdict(many.key_bytes <= MOST_BYTES),
        ),
    ]  # fmt: skip
    rows = [
        (one.tick, _what(one, many), f"{one.seconds:.1f}", number(1e6 * one.seconds / many.keys), f"{one.releases:,}",
         f"{one.bytes / 1e6:.0f}")
        for one in many.ticks
    ]  # fmt: skip
    return "\n\n".join(
        [
            figures.table(("what", "target", "found", ""), targets),
            f"{many.candidates:,} candidates took {many.arrival:.1f} s when they came.",
            f"## Ticks of {many.keys:,} shown keys",
            figures.table(("tick", "", "seconds", "µs a key", "releases", "MB of releases and state"), rows),
        ]
    )


def _what(one: Tick, part: Part) -> str:
    if not one.tick:
        return "all keys are shown"
    if one.is_busy:
        return "busy"
    if not one.has_candidates:
        return "silent"
    return "candidates come" if one.bytes and one is _first_with(part) else "silent, beside candidates"


def _first_with(part: Part) -> Tick | None:
    return next((one for one in part.ticks if one.has_candidates), None)


def from_json(known: dict[str, Any]) -> tuple[Part, Part]:
    """What a run kept."""
    many, long = (Part(**one | {"ticks": [Tick(**tick) for tick in one["ticks"]]}) for one in known["parts"])
    return many, long


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a hundredth of all keys; nothing is kept")
    parser.add_argument("--out", type=Path, help="a folder for figures and page")
    parser.add_argument("--part", nargs=4, type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part:
        tune_garbage_collector()
        print(json.dumps(asdict(measure(*given.part))))
        return
    less = 100 if given.quick else 1
    sizes = [(100_000 // less, 1_000_000 // less, 13, 3), (5_000 // less + 50, 0, 150, 0)]
    data: dict[str, Any] = {"parts": [figures.run("shown_keys", "--part", *map(str, size)) for size in sizes]}
    page(data).publish(given.out, keep=not given.quick)


def page(data: dict[str, Any]) -> Page:
    """The report of these figures."""
    seconds = sum(tick["seconds"] for part in data["parts"] for tick in part["ticks"])
    effort = f"{seconds:.0f} s of processor time in ticks, beside other load"
    return Page("shown-keys", TITLE, RULES, tables(*from_json(data)), effort, data, lambda folder: None)


if __name__ == "__main__":
    main()
