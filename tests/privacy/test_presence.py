"""Where presence is protected, nothing that leaves a worker but noisy sums depends on whether a unit is there.

One unit's records are left out, whatever they are: late, far ahead, malformed, of other keys, over the cap. Beats, and
the order of all else, stay. With scripted noise (`attended.py`), all that leaves the worker is then the same bytes.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.config.file import Config
from tests.privacy.attended import Schedule, Sent, beat, clock_record, present, sample, told, without
from tests.support.effort import examples

UNITS = [f"user{index}" for index in range(4)]
KEYS = {"group": "g", "groups": ["a", "b", "c"], "max_groups_per_user": 2}
CONFIGS: list[Config] = [
    present({}),
    present(KEYS, {"statistic": "count", "value": None, "range": None, "group": "g", "groups": ["a", "z"]}),
    present({"lateness": "7s"}, {"step": "20s", "late": "drop", "statistic": "sum"}),
    present(
        KEYS | {"decay": {"kind": "window", "length": "30s"}, "unit": "user-20s"},
        {"decay": {"kind": "exponential", "half_life": "20s"}, "max_ahead": "40s"},
        {"decay": {"kind": "polynomial", "exponent": 2}, "start": "1970-01-01T00:02:00Z"},
    ),
]
MALFORMED = [
    b"", b"{", b"[]", b"null", b'{"u": "user0"}', b'{"u": "user0", "x": 0.5}', b'{"u": 7.5, "x": 1, "t": 110}',
    b'{"u": "user0", "x": "1", "t": 110}', b'{"u": "user0", "x": 1e999, "t": 110}', b"\xff", b'{"t": 1e18}',
    b'{"u": "user0", "x": 1, "t": 110, "g": [1]}',
    b'{"shoal-beat": "1970-01-01T00:09:00Z"}',
]  # fmt: skip
seconds = st.one_of(st.integers(90, 215), st.sampled_from([-5, 0, 99, 100, 199, 200, 10**6, 10**10]))
partitions = st.integers(0, 1)
units = st.sampled_from(UNITS)
stamps = st.sampled_from([-1, 0, 100_000, 10**12])
samples = st.builds(
    sample, partitions, units, seconds, st.sampled_from([0, 0.25, 1]), stamps,
    g=st.sampled_from(["a", "b", "c", "z", "never declared"]),
)  # fmt: skip
oddities = st.builds(Sent, partitions, st.sampled_from(MALFORMED), units, stamps)
records = st.one_of(
    samples, samples, samples, oddities,
    st.builds(clock_record, partitions, seconds, units),
    st.builds(Sent, partitions, st.none(), units),
    st.builds(beat, partitions, st.integers(80, 230)),
)  # fmt: skip
schedules = st.lists(
    st.tuples(
        st.sampled_from(["bound", "release", "crash_bound", "crash_release"]), st.integers(0, 1), st.integers(1, 9)
    ),
    max_size=12,
)
LAST = [beat(0, 500, stamp=10**12), beat(1, 500, stamp=10**12)]
phases_of = st.lists(st.lists(records, max_size=25), min_size=1, max_size=3).map(lambda phases: [*phases, LAST])


@pytest.mark.parametrize("cfg", CONFIGS, ids=range(len(CONFIGS)))
@examples(40)
@given(data=st.data())
def test_a_unit_that_is_there_changes_no_byte(cfg: Config, data: st.DataObject):
    phases, unit = data.draw(phases_of), data.draw(units)
    some, other = (data.draw(st.lists(schedules, min_size=len(phases), max_size=len(phases))) for _ in range(2))
    assert told(cfg, phases, some) == told(cfg, without(phases, unit), other)


STEADY = [[(0, second) for second in range(100, 201, 5)], [(1, second) for second in range(102, 203, 5)]]
EMPTY: list[Schedule] = [[], []]


def compare(cfg: Config, *sent: Sent, unit: str = "user0") -> list[Any]:
    """A unit's records among others' and steady beats, once in one go and once record by record."""
    others = [sample(partition, f"user{partition + 1}", second, g="a") for partition, second in STEADY[0]]
    beats = sorted((beat(*one) for both in STEADY for one in both), key=lambda one: one.header or ("", 0))
    phases = [[*others[:3], *beats[:20], *sent, *beats[20:], *others[3:]], LAST]
    slowly = [(action, where, 1) for _ in range(60) for action in ("bound", "release") for where in (0, 1)]
    found = told(cfg, phases, EMPTY)
    assert found == told(cfg, without(phases, unit), [slowly, slowly])
    return found


def releases(found: list[Any]) -> list[dict[str, Any]]:
    """What was published in the end."""
    transactions = (one for _, each in sorted(found[-1]["published"].items()) for one in each)
    return [json.loads(value) for _, records in transactions for _, value, _ in records]


def test_whoever_is_alone_moves_nothing():
    """A release at every step of every declared key, counted from the start."""
    found = releases(compare(CONFIGS[1], sample(0, "user0", 115, g="b")))
    of_key = [one["seq"] for one in found if (one["metric"], one["group"]) == ("m0", "b")]
    assert of_key == list(range(1, 11))
