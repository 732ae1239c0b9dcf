"""The page's functions, in the browser that runs them: numbers, times, what is thinned, what is told of noise."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import Browser, Tab

SAYS = [
    # a number has as many digits as its noise leaves meaning in
    ("short(35.2345, 1.5)", "35.2"),
    ("short(13049, 19000)", "13,000"),
    ("short(-0.00123, 0.0004)", "−0.0012"),
    ("short(-3, 400)", "0"),
    ("short(5339, 0)", "5,339"),
    ("short(12345678, 0)", "12,345,678"),
    ("short(23456789, 300000)", "23.5 M"),
    ("short(0, 0)", "0"),
    ("short(0.123456789, 0)", "0.1235"),
    ("short(null, 1)", "–"),
    ("margin(1, 4)", "± 1.5"),
    ("margin(2, 2)", "exact"),
    # and what says how far noise reaches is never smaller than it is
    ("margin(0, 48)", "± 30"),
    ("margin(33.3, 35.9)", "± 1.3"),
    ("below(33.39, 1.3) + ' to ' + above(35.91, 1.3)", "33.3 to 36.0"),
    ("below(-9478, 9478) + ' to ' + above(9478, 9478)", "−10,000 to 10,000"),
    ("margin(null, null)", ""),
    ("samples(1, null)", "1 sample"),
    ("samples(65971, null)", "65,971 samples"),
    ("samples(202.4, 6.1)", "about 202 ± 13 samples"),
    ("percent(0.125)", "13 %"),
    ("percent(0.016)", "1.6 %"),
    # times, in UTC
    ("moment(0)", "1 Jan 1970"),
    ("moment(3600)", "1 Jan 1970, 01:00"),
    ("moment(3661)", "1 Jan 1970, 01:01:01"),
    ("moment(-62135596800)", "1 Jan 1"),
    ("span(604800)", "week"),
    ("span(172800)", "2 days"),
    ("span(90)", "90 seconds"),
    ("ago(0, 7200)", "2 hours ago"),
    ("ago(0, 3)", "just now"),
    ("axis(1500000, 500000)", "1.5 M"),
    # what must be said of a release before anyone uses it
    ("doubt({low: -1, high: 3}, 'sum')", "zero is within the noise"),
    ("doubt({low: 1, high: 3}, 'sum')", None),
    ("doubt({low: 0, high: 60}, 'mean', [0, 100])", "noise as wide as half of the range: not of use"),
    ("doubt({low: 10, high: 20}, 'mean', [0, 100])", None),
    ("doubt({low: 0, high: 20}, 'variance', null)", "zero is within the noise"),
    ("doubt({low: 3, high: 3}, 'sum')", None),
    ("doubt({none: true, low: -1, high: 1}, 'sum')", None),
    # axes
    ("ticks(0, 10, 5)[0]", [0, 2, 4, 6, 8, 10]),
    ("ticks(-1, 1, 4)[0]", [-1, -0.5, 0, 0.5, 1]),
    ("timeTicks(0, 3 * 86400, 4).map((t) => t[1])", ["1 Jan", "2 Jan", "3 Jan", "4 Jan"]),
    ("timeTicks(0, 800 * 86400, 4).map((t) => t[1])", ["1970", "1971", "1972"]),
    ("timeTicks(0, 7200, 3).map((t) => t[1])", ["1 Jan", "01:00", "02:00"]),
    ("nearest([0, 10, 20], 14)", 1),
    ("nearest([0, 10, 20], 16)", 2),
    ("nearest([5], 99)", 0),
    # how late a worker is: from the end of the first step that it lacks and could have
    ("behind([{times: byName({m: 864000}), late: byName({t: 61200})}], 't', 864000 + 61200, AGREED)", 0),
    ("behind([{times: byName({m: 864000}), late: byName({t: 9e9})}], 't', 950400 + 600, AGREED)", 0),
    ("behind([{times: byName({m: 864000}), late: byName({t: 9e9})}], 't', 950400 + 3900, AGREED)", 300),
    ("behind([{times: byName({m: 864000 + 7200}), late: byName({t: 9e9})}], 't', 950400 + 3900, AGREED)", 300),
    ("behind([{times: byName({m: 1728000}), late: byName({t: 9e9})}], 't', 9e9, AGREED)", 0),
    ("behind([{times: byName({m: 864000}), late: byName({t: 61200})}], 't', 864000 + 61200, byName({}))", 61200),
]  # fmt: skip


AGREED = (
    "byName({m: {topic: 't', every: 86400, lateness: 3600, end: 1728000}, other: {topic: 'u', every: 1, lateness: 0}})"
)


def worker(times: dict[str, float]) -> str:
    """Expression for the status of one worker that has read all events."""
    of_it = {"name": "w", "reached": True, "ready": True, "discreet": True, "partitions": 1, "events": None}
    said = json.dumps(
        {"workers": [of_it | {"reasons": [], "lag": {}, "late": {}, "times": times, "waits": [], "dead": []}]}
    )
    return f"receivedStatus({said})"


@pytest.fixture(scope="module")
def tab(browser: Browser, town_page: Path) -> Iterator[Tab]:
    with browser.tab() as opened:
        yield opened.open(town_page.as_uri())


def series(values: list[float | None], width: float = 1.0, **more: Any) -> str:
    """The columns of a group, as the page has them."""
    columns = {
        "at": [10 * i for i in range(len(values))], "v": values,
        "low": [None if v is None else v - width for v in values], "n": [5] * len(values), "sd": None,
        "high": [None if v is None else v + width for v in values], "stride": 1, "extras": {},
    } | more  # fmt: skip
    return json.dumps(columns)


def test_what_the_page_says(tab: Tab) -> None:
    found = tab.run(f"[{', '.join(expression for expression, _ in SAYS)}]".replace("AGREED", AGREED))
    assert dict(zip([e for e, _ in SAYS], found, strict=True)) == dict(SAYS)


def test_a_metric_whose_end_has_passed_has_ended(tab: Tab) -> None:
    for reached, words in ((1_728_000, "nothing: it has ended"), (1_641_600, "time to pass")):
        tab.run(f"drawRunning({worker({'m': reached})}, 1800000, {AGREED})")
        assert words in tab.run("document.getElementById('running').textContent"), reached
    tab.run(f"drawRunning({worker({'m': 864_000})}, 950000, {AGREED})")
    assert "time to pass" in tab.run("document.getElementById('running').textContent")
    tab.run("drawRunning(null, 0)")


def test_a_thinned_line_ends_at_its_last_value_and_its_band_holds_all_noise(tab: Tab) -> None:
    values: list[float | None] = [float(i % 100) for i in range(10_000)]
    thin = tab.run(f"thin({series(values)}, 100, false)")
    assert len(thin["v"]) <= 101
    assert thin["v"][-1] == values[-1]
    assert (min(thin["low"]), max(thin["high"])) == (-1, 100)


def test_a_gap_stays_a_gap_however_thin(tab: Tab) -> None:
    values: list[float | None] = [1.0] * 1000
    values[500] = None
    line = tab.run(f"paths(thin({series(values)}, 50, false), (t) => t, (v) => v, 10000).line")
    assert line.count("M") == 2


def test_a_slot_without_a_release_is_a_gap(tab: Tab) -> None:
    columns = series([1.0, 2.0, 3.0], at=[10, 20, 50])
    path = tab.run(f"paths(thin({columns}, 100, false, 10), (t) => t, (v) => v, 50)")
    assert path["line"] == "M0.0 1.0H10.0V2.0H20.0M40.0 3.0H50.0"
    assert tab.run(f"slotOf([{columns}])") == 10


def test_where_nothing_is_known_it_is_hatched_and_not_drawn(tab: Tab) -> None:
    columns = series([50.0, 50.0, 41.0], n=[0, 0, 9])
    path = tab.run(f"paths(thin({columns}, 100, true), (t) => t, (v) => v, 30)")
    assert path["hatched"] == [[0, 20]]
    assert path["line"] == "M20.0 41.0H30.0"
    # of a sum without samples the release is what it says: noise about nothing
    assert tab.run(f"paths(thin({columns}, 100, false), (t) => t, (v) => v, 30).hatched") == []


def test_the_axis_leaves_out_what_has_far_more_noise_than_usual_until_it_is_asked_for(tab: Tab) -> None:
    columns = series([10.0] * 20, low=[-990] + [9] * 19, high=[1010] + [11] * 19)
    low, high = tab.run(f"reach([{columns}], false, false, false)")
    assert (low > 8, high < 12) == (True, True)
    low, high = tab.run(f"reach([{columns}], true, false, false)")
    assert (low < -990, high > 1010) == (True, True)


def test_an_axis_has_a_height_whatever_is_on_it(tab: Tab) -> None:
    cases: list[list[float | None]] = [[], [None], [0.0], [7.0, 7.0], [1e300, -1e300]]
    for values in cases:
        low, high = tab.run(f"reach([{series(values, 0)}], false, false, true)")
        assert low < high, values


def test_outliers_are_told_with_how_many_chance_would_give(tab: Tab) -> None:
    rows = [{"v": 50 + (i % 7), "low": 30, "high": 70} for i in range(90)] + [{"v": 99, "low": 95, "high": 99}] * 10
    words = tab.run(f"(() => {{ const r = {json.dumps(rows)}; return outlierWords(r.length, outliers(r)); }})()")
    assert words == "10 clear of the median, where noise alone would give up to 5; 90 within noise of it"


def test_groups_are_ordered_by_what_is_asked_for(tab: Tab) -> None:
    rows = [{"g": "b", "v": 1, "low": 0, "high": 9, "n": 3}, {"g": "a", "v": 2, "low": 1, "high": 3, "n": 2}]
    orders = tab.run(
        f"Object.fromEntries(Object.entries(ORDERS).map(([k, o]) => [k, {json.dumps(rows)}.sort(o[1])[0].g]))"
    )
    assert orders == {"samples": "b", "high": "a", "low": "b", "sure": "a", "name": "a"}
