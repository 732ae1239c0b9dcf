"""Any window after the fact: what releases alone tell of it, whatever rested meanwhile."""

import math
from collections import defaultdict
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.linear.windows import Step, sums_of_windows, window
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.statistic import Estimate
from shoal.mechanisms.sums.patent.all_window_sum import AllWindowSum, AllWindowSummer
from shoal.mechanisms.sums.running import RunningSummer
from shoal.models.config.file import Config
from shoal.models.errors import InputError
from shoal.models.releases.record import record_of
from shoal.models.times import iso, time_of_text
from shoal.stream.any_window import History, tells_windows, with_nodes
from tests.stream.simulation import config, event, run_file
from tests.support.cover import in_a_loop
from tests.support.effort import examples

STEP = 5_000_000
SURE = "1000000000000"  # epsilon: so much that there is no noise
ALL = {"kind": "all-windows"}
KINDS = [(ALL, "sharp"), (ALL, "patent"), ({"kind": "none"}, "sharp")]


def summed(decay: dict[str, Any] = ALL, **more: Any) -> dict[str, Any]:
    return {"statistic": "sum", "decay": decay, "every": "5s"} | more


def released(cfg: Config, events: list[bytes], group: str | None = None) -> list[dict[str, Any]]:
    return [one for one in map(orjson.loads, run_file(cfg, events)) if one["group"] == group]


def mechanism(cfg: Config) -> LinearStatistic:
    found = statistic_of(cfg.metric[0].parts)
    assert isinstance(found, LinearStatistic)
    return found


def history(cfg: Config, releases: list[dict[str, Any]], read: list[int] | None = None) -> History:
    """What anyone who has the releases and the configuration can make; `read` gets the seqs that were looked at."""

    def look(seq: int) -> Any:
        if read is not None:
            read.append(seq)
        return with_nodes(record_of(orjson.dumps(releases[seq - 1])))

    return History(cfg.metric[0].parts, mechanism(cfg), "here", len(releases), look)


# ---------------------------------------------------------------- what is told

rows = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.sampled_from([-2, -0.5, 1.75, 6]),
        st.sampled_from([0, 0, 1, 3, 5, 9, 17, 30]), st.sampled_from("xy"),
    ),
    min_size=1, max_size=10,
)  # fmt: skip


@examples(15)
@given(rows, st.sampled_from(KINDS), st.sampled_from(["sum", "count", "mean"]), st.sampled_from([1, 3, 10**6]))
def test_every_window_has_the_statistic_of_what_came_in_it(rows, kind, statistic, max_gap):
    # given events in two groups with silences, in which groups rest, and so much epsilon that there is no noise
    decay, algorithm = kind
    events, came, now = [], defaultdict(list), 100
    for user, x, pause, group in rows:
        now += pause
        events.append(event(user, x, now, g=group))
        came[group].append((now * 10**6, x))
    values = {"range": (-2, 6), "grid": 32} if statistic != "count" else {}
    cfg = config(
        summed(
            decay, statistic=statistic, algorithm=algorithm, epsilon=SURE, group="g", max_contributions=99,
            max_groups=2, max_gap=max_gap, **values,
        )
    )  # fmt: skip
    for group, samples in came.items():
        told = history(cfg, released(cfg, events, group))
        first = samples[0][0] // STEP * STEP
        # then the releases tell every window, whether or not it begins or ends before the group's first step
        for end in range(first - STEP, told.end + 1, STEP):
            for length in range(STEP, end - first + 2 * STEP, STEP):
                inside = [x for at, x in samples if end - length <= at < end]
                found = told.answer(end, length)
                assert (found.start, found.end, found.first) == (end - length, end, first)
                if statistic == "mean" and not inside:
                    assert found.estimate is None
                    continue
                exact = {"sum": math.fsum(inside), "count": len(inside), "mean": mean(inside)}[statistic]
                assert found.estimate is not None
                assert found.estimate.samples == len(inside)
                assert found.estimate.value == pytest.approx(exact, abs=1e-6)


def mean(numbers: list[float]) -> float:
    return math.fsum(numbers) / len(numbers) if numbers else 0.0


STREAM = [event(f"u{n}", n % 4 / 3, 100 + 3 * n + 60 * (n > 20), g="g") for n in range(40)]


@in_a_loop
@pytest.mark.parametrize("statistic", ["sum", "mean", "count"])
@pytest.mark.parametrize(("decay", "algorithm"), KINDS)
def test_the_window_of_all_steps_is_the_release(statistic, decay, algorithm):
    cfg = config(summed(decay, statistic=statistic, algorithm=algorithm, epsilon="0.02"))
    releases = released(cfg, STREAM)
    told = history(cfg, releases)
    for t, release in enumerate(releases, start=1):
        found = told.answer(105_000_000 + (t - 1) * STEP, t * STEP).estimate
        assert found is not None
        assert (found.value, found.samples) == (release["value"], release["samples"])
        bars = (found.noise_sd, found.low, found.high)
        assert bars == pytest.approx((release["noise_sd"], release["low"], release["high"]), rel=1e-5)


def test_sharp_windows_are_differences_of_releases():
    cfg = config(summed(max_gap=2))
    releases = released(cfg, STREAM)
    by_end = {orjson.dumps(one["at"]): one["nodes"][0] for one in releases}
    told = history(cfg, releases)
    nodes, ends = 0, []
    for end in range(105_000_000, told.end + 1, STEP):
        # while the group rests the sum stays what it was
        nodes = by_end.get(orjson.dumps(iso(end)), nodes)
        ends.append(nodes)
    assert len(ends) > len(releases)
    for t in range(1, len(ends) + 1):
        for length in range(1, t):
            found = told.answer(100_000_000 + t * STEP, length * STEP).estimate
            assert found is not None
            assert found.value == (ends[t - 1] - ends[t - length - 1]) / 16
            assert (found.noise_sd == 0) == (ends[t - 1] == ends[t - length - 1])


def test_patent_windows_are_sums_of_their_cover_and_where_nothing_was_released_of_its_parts():
    cfg = config(summed(algorithm="patent", max_gap=2))
    releases = released(cfg, STREAM)
    told, sums = history(cfg, releases), AllWindowSum(8 * 16, cfg.metric[0].epsilon)
    steps = {((time_of_text(one["at"]) or 0) - 100_000_000) // STEP: one["nodes"] for one in releases}
    rested = set(range(1, max(steps))) - set(steps)
    assert len(rested) > 3
    for t in range(1, max(steps) + 1):
        for length in range(1, t + 1):
            parts = sums.parts(t, length)
            if any(part.step in rested for part in parts):
                parts = sums.parts(t, length, lambda t: max((step for step in steps if step <= t), default=0))
            found = told.answer(100_000_000 + t * STEP, length * STEP).estimate
            assert found is not None
            assert found.value == sum(steps[part.step][part.place] for part in parts) / 16
            spread = math.sqrt(sum(sums.window_variance(part.step, 1 << part.place) for part in parts)) / 16
            assert found.noise_sd == pytest.approx(spread, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["sharp", "patent"])
def test_the_noise_of_windows_has_the_spread_that_is_stated(algorithm):
    """In each of many groups, whose noise is independent: steps 1 to 11 and 16 to 24, with a rest between."""
    groups = 700
    of = mechanism(config(summed(algorithm=algorithm, max_contributions=1)))
    released = [noised(of, number) for number in range(groups)]
    sums_told = sums_of_windows(of)
    assert sums_told is not None
    for end, length in ((24, 24), (24, 12), (11, 6), (20, 13), (9, 1)):
        told = window(of, end, length, last, released[0].__getitem__)
        assert told is not None
        sd, half = told.noise_sd * 16, (told.high - told.low) / 2 * 16
        parts = sums_told.parts(end, length, last)
        sums = [sum(part.sign * steps[part.step].nodes[part.place] for part in parts) for steps in released]
        assert told.value == sums[0] / 16
        # Laplace noise has kurtosis up to 6: three standard errors of its variance
        assert math.fsum(x * x for x in sums) / groups == pytest.approx(sd**2, rel=3 * math.sqrt(5 / groups))
        inside = sum(abs(x) <= half for x in sums) / groups
        assert inside == pytest.approx(0.95, abs=3 * math.sqrt(0.95 * 0.05 / groups) + 0.002)
    # and a window of steps that released nothing is 0, exactly
    assert window(of, 14, 3, last, released[0].__getitem__) == Estimate(0.0, 0.0, 0.0, 0.0, {"samples": 0})


def last(t: int) -> int:
    return 11 if 11 < t < 16 else t


def noised(of: LinearStatistic, number: int) -> dict[int, Step]:
    """What a group publishes in which all samples are 0."""
    summer, held = of.sums.summer(lambda epoch: derive(bytes(32), number, epoch)), {}
    assert isinstance(summer, AllWindowSummer | RunningSummer)
    for t in range(1, 25):
        if t == 12:
            summer.skip(4)
        if t == last(t):
            summer.add(0)
            held[t] = Step(0, summer.released)
    return held


def test_few_releases_are_read():
    cfg = config(summed(algorithm="patent", max_gap=3, max_contributions=9999))
    events = [event("a", 1, 5 * step) for step in range(1000) if step % 125 < 120]
    read: list[int] = []
    releases = released(cfg, events)
    told = history(cfg, releases, read)
    assert told.answer(5_000_000 * 975, 5_000_000 * 802).estimate is not None
    assert len(set(read)) == len(read) < 100
    # and of one that never rested only those that the window is made of
    cfg, read = config(summed(epsilon=SURE)), []
    told = history(cfg, released(cfg, [event("a", 1, 0), event("a", 1, 5 * 900)]), read)
    assert told.answer(5_000_000 * 800, 5_000_000 * 300).estimate is not None
    assert sorted(read) == [1, 500, 800, 901]


# ---------------------------------------------------------------- what is refused


def test_which_metrics_tell_windows():
    ten = {"kind": "window", "length": "10s"}
    cfg = config(summed(), summed({"kind": "none"}), summed(ten), {}, summed({"kind": "none"}, statistic="mean"))
    assert [tells_windows(section.parts) for section in cfg.metric] == [True, True, False, False, True]
    with pytest.raises(ValueError, match="tell windows"):
        window(mechanism(config(summed(ten))), 1, 1, lambda t: t, lambda t: Step(0, ()))


def test_an_end_after_the_last_release_is_refused():
    cfg = config(summed())
    told = history(cfg, released(cfg, STREAM))
    with pytest.raises(
        InputError, match=r"here: 1970-01-01T00:04:50Z is after the end of the last release, 1970-.*wait"
    ):
        told.answer(290_000_000, STEP)


OTHERS = [
    {"range": (0, 2)}, {"range": (-1, 1)}, {"grid": 8}, {"epsilon": 2}, {"max_contributions": 4}, {"every": "1s"},
    {"every": "10s"}, {"every": "3s"}, {"algorithm": "patent"}, {"version": 2}, {"unit": "user-day"}, {"delta": "0.1"},
    {"statistic": "mean"}, {"statistic": "count"},
]  # fmt: skip


@in_a_loop
@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_releases_of_another_configuration_are_refused(other):
    releases = released(config(summed()), STREAM)
    with pytest.raises(InputError, match="not what the configuration makes"):
        history(config(summed() | other), releases)


@in_a_loop
@pytest.mark.parametrize(
    "change",
    [{"at": "soon"}, {"at": 7}, {"samples": True}, {"nodes": None}, {"nodes": [1.5]}, {"nodes": ["x"]}, {"value": "1"}],
    ids=str,
)
def test_what_is_no_release_is_refused(change):
    cfg = config(summed())
    releases = released(cfg, STREAM)
    with pytest.raises(ValueError, match="no release with nodes"):
        with_nodes(record_of(orjson.dumps(releases[0] | change)))


def test_a_release_without_its_nodes_is_refused():
    cfg = config(summed(algorithm="patent"))
    releases = released(cfg, STREAM)
    releases[3]["nodes"].pop()
    told = history(cfg, releases)
    with pytest.raises(InputError, match="a release lacks nodes"):
        told.answer(120_000_000, 4 * STEP)


def test_numbers_beyond_64_bits_are_told():
    cfg = config(summed(epsilon="0.000000000001", grid=2**32, range=(0, 1)))
    releases = released(cfg, STREAM)
    assert {type(node) for one in releases for node in one["nodes"]} == {str}
    found = history(cfg, releases).answer(115_000_000, STEP).estimate
    assert found is not None
    assert found.value == pytest.approx((int(releases[2]["nodes"][0]) - int(releases[1]["nodes"][0])) / 2**32)
