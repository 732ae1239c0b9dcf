"""A key meets one stream: the noise of a version is drawn over one input, whoever runs it, and however often.

The same noise over two inputs shows the exact difference of their sums. And a second input in *other* groups, whose
noise is fresh, still gives a user more groups than epsilon was split over.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from shoal.agents.audit import key_file
from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.session import open_session
from shoal.agents.cli.main import app
from shoal.mechanisms.noise.keyed import Bits
from shoal.models.config.metric import MetricSection
from shoal.models.errors import AuditError, KeyFileError, LedgerError, ShoalError
from shoal.stream import file_run
from shoal.stream.topic import plan_topic
from tests.privacy.observing import Row, raws, watch_file
from tests.stream.simulation import config
from tests.support.effort import examples

pytestmark = pytest.mark.slow

CONFIG = """
[audit]
url = "sqlite:///log.db"
[privacy]
key_file = "shoal.key"
epsilon = 100
[[metric]]
name = "mean"
topic = "events"
user = "u"
value = "x"
time = "t"
group = "g"
statistic = "mean"
algorithm = "naive"
range = [0, 1]
epsilon = 1
max_per_group = 5
users = 10
every = "10s"
"""
OF_ALL = CONFIG.replace('group = "g"\n', "").replace("max_per_group", "max_contributions")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shoal.toml").write_text(CONFIG)
    key_file.new(tmp_path / "shoal.key")
    return tmp_path


def run(folder: Path, rows: list[Row], *more: str) -> list[dict[str, Any]]:
    (folder / "in.jsonl").write_bytes(b"".join(raw + b"\n" for raw in raws(rows)))
    (folder / "out.jsonl").unlink(missing_ok=True)
    names = ["run", str(folder / "shoal.toml"), "--input", str(folder / "in.jsonl")]
    result = CliRunner().invoke(app, [*names, "--output", str(folder / "out.jsonl"), *more])
    if result.exception is not None:
        raise result.exception
    return shown(folder)


def shown(folder: Path) -> list[dict[str, Any]]:
    out = folder / "out.jsonl"
    return [orjson.loads(line) for line in out.read_bytes().splitlines()] if out.exists() else []


def heads(folder: Path) -> dict[str, int]:
    with Ledger.open(f"sqlite:///{folder}/log.db") as ledger:
        return {group.group: head.seq for group, head in ledger.of("shoal").heads().items()}


def refused(folder: Path, error: type[ShoalError], message: str, rows: list[Row], *more: str) -> None:
    """Refused, and nothing is shown or logged that was not before."""
    before = heads(folder)
    with pytest.raises(error, match=message):
        run(folder, rows, *more)
    assert heads(folder) == before
    assert all(one["seq"] <= before.get(one["group"] or "", 0) for one in shown(folder))


def people(group: str, number: str = "1", times: range = range(0, 40, 5), who: str = "user") -> list[Row]:
    return [Row(f"{who}{n % 3}", number, time, group) for n, time in enumerate(times)]


# ---------------------------------------------------------------- a second input


@pytest.mark.parametrize("chunk", [1, 3, 5000])
def test_a_second_input_in_other_groups_is_another_stream(folder, chunk, monkeypatch):
    """Regression: a group was compared with its own past only, so a user had `max_groups` groups per file."""
    monkeypatch.setattr(file_run, "CHUNK", chunk)
    # given users with their one group published from one file
    run(folder, people("a"), "--open")
    assert heads(folder) == {"a": 3}
    # when another file has the same users in another group, then none of it is published
    refused(folder, LedgerError, 'group "a": release 3 is in the audit log', people("b"), "--open")
    # nor if it has the first releases of the first group, too
    some = [*people("a", times=range(0, 10, 5)), *(Row("user2", "1", time, "b") for time in range(10, 40))]
    refused(folder, LedgerError, "this input does not make it", some, "--open")


@pytest.mark.parametrize("chunk", [1, 3, 5000])
@pytest.mark.parametrize("end", [["--open"], []])
def test_a_second_input_with_other_values_publishes_nothing_new_anywhere(folder, chunk, end, monkeypatch):
    """Regression: what was new in groups that the first input lacked went into the log beside the refusal."""
    monkeypatch.setattr(file_run, "CHUNK", chunk)
    run(folder, people("a"), "--open")
    other = sorted([*people("a", "0"), *people("b", "0", who="other")], key=lambda row: row.time)
    refused(folder, AuditError, "two values", other, *end)


@examples(6)
@given(st.integers(0, 8), st.integers(1, 5), st.booleans())
def test_a_continued_input_is_one_stream(tmp_path_factory, cut, chunk, grouped):
    # given a run over all events at once
    rows = sorted([*people("a"), *people("b", "0.5", range(3, 90, 9), "other")], key=lambda row: row.time)
    once, twice = tmp_path_factory.mktemp("once"), tmp_path_factory.mktemp("twice")
    for each in (once, twice):
        (each / "shoal.toml").write_text(CONFIG if grouped else OF_ALL)
    key_file.new(once / "shoal.key")
    (twice / "shoal.key").write_bytes((once / "shoal.key").read_bytes())
    (twice / "shoal.key").chmod(0o600)
    expected = run(once, rows)
    # when a part of them comes first, and then all
    with patch.object(file_run, "CHUNK", chunk):
        first = run(twice, rows[: cut * 2], "--open")
        longer = run(twice, rows)
    # then the same is published
    assert longer == expected
    assert all(one in expected for one in first)


# ---------------------------------------------------------------- workers and files


def with_workers(folder: Path) -> None:
    """Register as a worker does, which knows the partitions."""
    with open_session(folder / "shoal.toml") as session:
        session.register(partitions={"events": 4, "shoal.contributions": 8})


def test_a_file_adds_nothing_to_what_workers_publish(folder):
    """Regression: the log may be behind the topic, so a file's next release could be the topic's with other events."""
    with_workers(folder)
    refused(folder, LedgerError, "belongs to workers, and a version has one owner", people("a"))


# ---------------------------------------------------------------- another place


def test_the_same_parameters_under_another_app_are_refused(folder):
    run(folder, people("a"))
    (folder / "shoal.toml").write_text("[kafka]\napp = 'other'\n" + CONFIG)
    with pytest.raises(LedgerError, match="the same noise on two streams"):
        run(folder, people("a", "0"))


def test_a_link_to_a_key_is_that_key(folder, tmp_path_factory):
    """Regression: `.used` stood beside the link, so each link was a key that no log had used."""
    other = tmp_path_factory.mktemp("other")
    (other / "shoal.toml").write_text(CONFIG)
    (other / "shoal.key").symlink_to(folder / "shoal.key")
    run(folder, people("a"))
    with pytest.raises(KeyFileError, match="belongs to another audit log"):
        run(other, people("a", "0"))
    assert not (other / "out.jsonl").exists()


# ---------------------------------------------------------------- the ledger's note of an input


def test_the_digest_of_an_input_tells_nothing_to_who_lacks_the_key(folder):
    """Regression: it was the SHA-256 of the events, by which one user's value could be guessed and checked in SQL."""

    def noted() -> str:
        with Ledger.open(f"sqlite:///{folder}/log.db") as ledger:
            (version,) = ledger.of("shoal").versions()
        assert version.input_digest is not None
        return version.input_digest

    run(folder, people("a"))
    digest = noted()
    content = (folder / "in.jsonl").read_bytes()
    plain = {getattr(hashlib, name)(content).hexdigest() for name in ("md5", "sha1", "sha256", "sha512", "blake2b")}
    assert digest not in plain
    # the same again is the same; under another key it is another
    run(folder, people("a"))
    assert noted() == digest
    for name in ("log.db", "log.db-wal", "log.db-shm", "shoal.key", "shoal.key.used"):
        (folder / name).unlink(missing_ok=True)
    key_file.new(folder / "shoal.key")
    run(folder, people("a"))
    assert noted() != digest


# ---------------------------------------------------------------- names of draws


def test_no_two_groups_metrics_versions_or_parameters_share_a_subkey():
    names = ["a", "ab", "b", "a/1", "a|b", "a\\u0000", "\\u0000a", "1", "true", "tree", "mean0", "\\ud83d\\ude00", " "]
    rows = [f'{{"u":"user{n}","t":{n},"g":"{name}","x":0.5}}'.encode() for name in names for n in range(9)]
    usual = {"epsilon": 300, "group": "g"}
    alone = {key: value for key, value in usual.items() if key != "group"}
    naive = {"algorithm": "naive"}
    configs = [
        config(usual), config(alone), config(usual | naive), config(alone | naive), config(alone | {"grid": 17}),
        config(usual | {"name": "m01"}), config(usual | {"version": 2}), config(usual | {"users": 5}),
        config(usual | {"max_ahead": "29d"}), config(usual, idle_after="29s"),
        config(usual | {"statistic": "mean", "slot": "20s"}),
        config(usual | {"statistic": "variance", "slot": "20s"}),
    ]  # fmt: skip
    seen: list[set[bytes]] = []
    make = Bits.__init__
    for cfg in configs:
        for name in names if cfg.metric[0].group else names[:1]:
            used: set[bytes] = set()

            def record(bits: Bits, subkey: bytes, used: set[bytes] = used) -> None:
                used.add(subkey)
                make(bits, subkey)

            with patch.object(Bits, "__init__", record):
                watch_file(cfg, [row for row in rows if f'"{name}"'.encode() in row or not cfg.metric[0].group])
            assert used
            seen.append(used)
    everything = set().union(*seen)
    assert len(everything) == sum(map(len, seen))


OTHER = {
    "name": "other", "topic": "others", "user": "v", "value": "y", "time": "s", "group": "h", "range": (0, 2),
    "epsilon": 2, "max_contributions": 9, "users": 5, "algorithm": "naive", "every": "11s", "version": 2,
    "failure": "0.5", "max_groups": 2, "max_per_group": 9, "lateness": "1s", "late": "drop", "max_ahead": "1d",
    "grid": 17, "clamp": True, "prior": "0.3", "sigma": "0.3", "life": "90d", "withheld": True,
}  # fmt: skip
STEPPED = {"statistic": "sum", "every": "10s", "decay": {"kind": "window", "length": "1h"}}
OTHER_STEPPED = {  # with the others' names, and what only sums have
    "statistic": "mean", "every": "20s", "decay": {"kind": "window", "length": "2h"}, "delta": "1e-6",
    "unit": "user-day", "simultaneous": 3, "max_gap": 9,
}  # fmt: skip
EVENTS = STEPPED | {"unit": "event", "max_contributions": None}
SLOTTED = {"statistic": "mean", "slot": "10s", "group": "g"}
OTHER_SLOTTED = {  # with the others' names, and what only slots have
    "statistic": "variance", "slot": "20s", "cell": {"h3": 8, "lat": "a", "lon": "o"}, "max_groups": 2,
    "max_slots": 3, "across_cells": "split", "contribution_cap": "median", "min_users": 2, "bins": 9,
    "quantiles": ("0.5",), "algorithm": "baseline", "spread_share": "0.3",
}  # fmt: skip
OTHER_PRESENT = {  # with the others' names, and what only relation add-remove has
    "relation": "add-remove", "groups": ("a", "b"), "start": "1970-01-02", "end": "1970-01-03",
    "selection": {"epsilon": "0.1"}, "clip": "auto",
}  # fmt: skip
PRESENT = {"relation": "add-remove", "statistic": "sum", "every": "10s", "start": "1970-01-01", "group": "g"}
OF_EVENTS = "max_events_per_user"


def test_every_parameter_of_a_metric_changes_its_key_and_nothing_else_does():
    def key(metric: dict[str, Any], **kafka: Any) -> bytes:
        cfg = config(metric, **kafka)
        topic = cfg.topics[0]
        return plan_topic(cfg, topic, b"s" * 32, source_partitions=1, contributions_partitions=1).metrics[0].key

    tried = OTHER.keys() | OTHER_STEPPED.keys() | OTHER_SLOTTED.keys() | {*OTHER_PRESENT, OF_EVENTS}
    assert tried == MetricSection.model_fields.keys()
    given = {"algorithm": "multi-tree"}  # which has a prior
    grouped = {"group": "g"}
    of = {"prior": given, "life": {"algorithm": "sharp"}, "max_groups": grouped, "max_per_group": grouped}
    changed = [key({name: value} | of.get(name, {})) for name, value in OTHER.items()]
    changed += [key(given | {"prior": "0.4"}), key(grouped)]
    changed += [key({}, partitioner="crc32"), key({}, idle_after="1s")]
    stepped = [key(STEPPED | {name: value}) for name, value in OTHER_STEPPED.items()]
    stepped += [key(STEPPED | {"algorithm": "patent"}), key(STEPPED | {"decay": {"kind": "none"}})]
    changed += [*stepped, key(STEPPED), key(EVENTS), key(EVENTS | {OF_EVENTS: 2}), key(EVENTS | {OF_EVENTS: 3})]
    distribution: dict[str, Any] = {"statistic": "distribution", "grid": 64}
    needs: dict[str, dict[str, Any]] = {
        "cell": {"group": None}, "max_slots": {"unit": "user"}, "bins": distribution, "quantiles": distribution,
    }  # fmt: skip
    slotted = [key(SLOTTED | {name: value} | needs.get(name, {})) for name, value in OTHER_SLOTTED.items()]
    slotted += [key(SLOTTED | {"cell": {"h3": 9, "lat": "a", "lon": "o"}, "group": None}), key(SLOTTED | distribution)]
    changed += [*slotted, key(SLOTTED)]
    declared = PRESENT | {"groups": ("a",)}
    found = PRESENT | {"delta": "1e-6", "life": "1d"}
    changed += [key(declared), key(declared | {"groups": OTHER_PRESENT["groups"]}), key(found)]
    changed += [key(declared | {name: OTHER_PRESENT[name]}) for name in ("start", "end")]
    changed += [key(found | {"selection": {"epsilon": "0.1"}}), key(found | {"max_groups": 2})]
    clips: list[Any] = ["auto", {"epsilon": "0.1"}, {"crossing": "0.1"}, {"share": "0.1"}]
    changed += [key(declared | {"clip": clip}) for clip in clips] + [key(declared | {"clip": "auto", "users": 500})]
    assert len({*changed, key({})}) == len(changed) + 1
    # brokers, app and partitions may change; that an app has a key of its own the ledger sees to
    assert key({}, app="other", brokers="elsewhere:1", partitions=3) == key({})
    # and a default may be said
    assert key({"withheld": False}) == key({})
    assert key(SLOTTED | {"across_cells": "chop-user"}) == key(SLOTTED)


@given(st.lists(st.text(min_size=1, max_size=3), min_size=2, max_size=4, unique=True))
def test_pseudonyms_differ_between_metrics_and_say_nothing_without_the_key(users):
    cfg = config({"name": "one"}, {"name": "two"})
    plans = [
        plan_topic(cfg, "events", secret * 32, source_partitions=1, contributions_partitions=1)
        for secret in (b"a", b"b")
    ]
    found = [metric.pseudonym(user.encode()) for plan in plans for metric in plan.metrics for user in users]
    assert len(set(found)) == len(found)


# ---------------------------------------------------------------- the same bytes everywhere


@pytest.mark.slow
def test_the_order_of_hashes_changes_no_byte(folder):
    rows = [Row(f"user{n % 7}", f"0.{n}", n // 3, "abcdefg"[n % 5]) for n in range(150)]
    (folder / "in.jsonl").write_bytes(b"".join(raw + b"\n" for raw in raws(rows)))
    (folder / "shoal.toml").write_text(CONFIG.replace("naive", "full").replace("epsilon = 1\n", "epsilon = 90\n"))
    command = [sys.executable, "-m", "shoal", "run", "shoal.toml", "--input", "in.jsonl", "--output", "-"]
    outputs = []
    for seed in ("0", "12345"):
        for name in folder.glob("log.db*"):
            name.unlink()
        (folder / "shoal.key.used").unlink(missing_ok=True)
        environment = os.environ | {"PYTHONHASHSEED": seed, "TZ": f"X{seed[0]}", "LC_ALL": "C"}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
        outputs.append(done.stdout)
    assert len(outputs[0].splitlines()) > 10
    assert outputs[0] == outputs[1]
