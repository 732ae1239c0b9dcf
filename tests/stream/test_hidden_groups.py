"""Keys that nobody declared: nothing tells of one before it is shown, and its state survives."""

import orjson
import pytest

from shoal.models.config.file import Config
from shoal.models.errors import FailStop
from shoal.models.records import Message
from shoal.stream.file_run import FileRun, Line
from shoal.stream.release import ReleasePartition
from shoal.stream.table.inventory import HIDDEN
from shoal.stream.topic import TopicPlan, plan_topic
from tests.privacy.attended import present
from tests.stream.simulation import SECRET, event

SECOND = 10**6
COUNT = {"group": "g", "statistic": "count", "value": None, "delta": "1e-6", "every": "1s"}
FOUND = present(COUNT)
IN_WINDOWS = present({**COUNT, "decay": {"kind": "window", "length": "4s"}})
CLOCK = "t|0|fold|300000000|beats"


def plan(cfg: Config = FOUND) -> TopicPlan:
    return plan_topic(cfg, "events", SECRET, source_partitions=1, contributions_partitions=1)


def restored(changelog: dict[bytes, bytes], cfg: Config = FOUND) -> ReleasePartition:
    machine = ReleasePartition([plan(cfg)], 0, idle_after=1)
    machine.restore(changelog)
    return machine


class Partition:
    """One contributions partition, which is told who comes, and its changelog."""

    def __init__(self, cfg: Config = FOUND) -> None:
        self.changelog: dict[bytes, bytes] = {}
        self.machine = ReleasePartition([plan(cfg)], 0, idle_after=1)
        self.machine.start(0)
        self._number = 0

    def come(self, second: int, **units: int) -> list[bytes]:
        """So many units come to keys in a second; the clock passes it. What was released."""
        self._number += 1
        partials = {f"m0/1|{key}": [(second * SECOND, [0, count, 0, 1, count, count])] for key, count in units.items()}
        message = Message("events", 0, self._number, 0, 0, partials=partials, watermarks={CLOCK: (second + 1) * SECOND})
        self.machine.receive(message)
        self.machine.process([], self._number)
        while self.machine.pending():
            self.machine.work()
        found: list[bytes] = []
        while (taken := self.machine.take()) is not None:
            found += [release.value for release in taken.releases]
            found += [activated.value for activated in taken.activations]
            for name, value in taken.changelog:
                if value is None:
                    del self.changelog[name]
                else:
                    self.changelog[name] = value
        return found


def test_nothing_tells_of_a_key_before_it_is_shown() -> None:
    partition = Partition()
    assert partition.come(101, secret=2, town=3) == []
    machine = partition.machine
    assert list(machine.heads()) == []
    assert (machine.held("m0", "secret"), machine.published_count) == (None, 0)
    release, shown = map(orjson.loads, partition.come(103, town=300))
    assert shown == {
        "metric": "m0", "group": "town", "version": 1, "kind": "shown", "at": "1970-01-01T00:01:44Z", "epsilon": 0.2,
    }  # fmt: skip
    assert (release["group"], release["seq"], release["at"]) == ("town", 1, shown["at"])
    assert [group for _, group, *_ in machine.heads()] == ["town"]
    assert [orjson.loads(one)["seq"] for one in partition.come(106)] == [2, 3, 4]
    assert {orjson.loads(name[1:])[0] for name in partition.changelog if name.startswith(HIDDEN)} == {"m0/1|secret"}
    again = restored(partition.changelog)
    assert [head[1:] for head in again.heads()] == [head[1:] for head in machine.heads()]


def test_a_state_that_lacks_a_hidden_group_is_refused_and_the_group_is_not_named() -> None:
    partition = Partition()
    partition.come(101, secret=2, town=3)
    partition.come(102, secret=1)
    restored(partition.changelog)
    for name in [name for name in partition.changelog if name.startswith(HIDDEN)]:
        with pytest.raises(FailStop, match="other hidden groups than are due") as refused:
            restored({key: value for key, value in partition.changelog.items() if key != name})
        assert "secret" not in str(refused.value)


def test_state_of_a_retired_metric_is_passed_over() -> None:
    partition = Partition()
    partition.come(101, secret=2)
    other = present({"name": "other"})
    config = plan_topic(
        other, "events", SECRET, source_partitions=1, contributions_partitions=1, retired=frozenset({"m0/1"})
    )
    machine = ReleasePartition([config], 0, idle_after=1)
    machine.restore(partition.changelog)
    assert list(machine.heads()) == []


def test_a_keys_name_is_its_text_whoever_wrote_it_first() -> None:
    names: list[set[str]] = []
    for first, then in ((1, "1"), ("1", 1.0)):
        lines = [Line(n, event(f"u{n}", 1, 101, g=first if n % 2 else then)) for n in range(300)]
        made = [orjson.loads(release.value) for output in FileRun(plan()).outputs(lines) for release in output.releases]
        names.append({release["group"] for release in made})
    assert names == [{"1"}, {"1"}]
