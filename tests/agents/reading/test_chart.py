"""The chart of a notebook: what is said, what is drawn, and that nothing in a name becomes markup."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.agents.reading.chart import LEGEND, MOST_METRICS, MOST_PANELS, html_of
from shoal.agents.reading.series import FAR, NONE, UNKNOWN, Point, reach, series_of, thinned, ticks
from shoal.agents.reading.source import length_of
from shoal.models.config.file import load
from shoal.models.releases.record import Release, record_of
from tests.support.effort import examples
from tests.support.releases import CELLS, HOUR, release, town

CONFIG = """
[audit]
url = "sqlite:///log.db"
[privacy]
epsilon = 9
[[metric]]
name = "basket"
topic = "purchases"
user = "customer"
value = ["amount", "tip"]
time = "at"
statistic = "mean"
range = [[0, 180], [0, 10]]
every = "1d"
max_contributions = 8
users = 100
epsilon = 1
[[metric]]
name = "sales"
topic = "purchases"
user = "customer"
value = "amount"
time = "at"
statistic = "sum"
range = [-200, 200]
every = "1d"
max_contributions = 8
epsilon = 1
[[metric]]
name = "spread"
topic = "purchases"
user = "customer"
value = "amount"
time = "at"
statistic = "variance"
range = [0, 200]
every = "1d"
decay = { kind = "window", length = "7d" }
max_contributions = 8
epsilon = 1
"""


def records(given: Any) -> list[Release]:
    found = [record_of(json.dumps(each).encode()) for each in given]
    assert all(isinstance(each, Release) for each in found)
    return [each for each in found if isinstance(each, Release)]


def drawn(*given: dict[str, Any], config: Path | None = None) -> str:
    metrics = {} if config is None else {(each.name, each.version): each for each in load(config).metrics}
    found = html_of(records(given), lambda metric, version: metrics.get((metric, version)))
    ElementTree.fromstring(found)
    assert not [mark for mark in ("<script", "<style", "http", "url(", "onload", "@import") if mark in found]
    return found


def pieces(markup: str, tag: str) -> Iterator[ElementTree.Element]:
    return ElementTree.fromstring(markup).iter(tag)


def said(markup: str) -> str:
    return "".join(ElementTree.fromstring(markup).itertext())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "shoal.toml").write_text(CONFIG)
    return tmp_path / "shoal.toml"


def test_of_nothing_it_says_so():
    assert html_of([], lambda *_: None) == "<div>no releases</div>"


def test_every_metric_has_its_last_number_with_its_interval():
    markup = drawn(*town(20, 3))
    text = said(markup)
    assert [metric for metric in ("basket", "orders", "sales", "speed", "visit") if metric not in text] == []
    assert "exact and public" in text
    assert LEGEND in text
    assert "Grey: nothing known yet." in text
    assert len(list(pieces(markup, "rect"))) == 1  # basket has no sample at first
    assert "epsilon = 1 per person, for ever" in text
    assert not said(drawn(release("a", 1, 5.0))).endswith("Grey: nothing known yet.")


def test_nothing_in_a_name_is_markup():
    markup = drawn(release("<script>alert(1)</script>", 1, 5.0, group='"><img src=x onerror=alert(1)>\x1b[2J'))
    assert not list(pieces(markup, "img"))
    assert "<script>alert(1)</script>" in said(markup)
    assert "\\u001b[2J" in said(markup)


CASES = [
    (release("sales", 1, 50.0, 100.0), "50 ± 100 (-50 to 150), zero is within the noise, "),
    (release("sales", 1, 500.0, 100.0), "500 ± 100 (400 to 600), 2026-03-02"),
    (release("sales", 1, 500.0, 0.0), "500 exactly, 2026-03-02"),
    (
        release(
            "spread",
            1,
            {"mean": 90.0, "variance": 5.0},
            low={"mean": 89.0, "variance": 0.0},
            high={"mean": 91.0, "variance": 15.0},
        ),
        "zero is within the noise",
    ),
    (release("sales", 1, None), "no release, 2026-03-02"),
    (release("basket", 1, 90.0, samples=0), "nothing known yet, 2026-03-02"),
    (
        release("basket", 1, [90.0, 4.0], low=[30.0, 3.9], high=[150.0, 4.1]),
        "amount 90 ± 60 (30 to 150), noise as wide as half of the range: not of use, 2026-03-02",
    ),
    (release("basket", 1, [90.0, 4.0], low=[30.0, 3.9], high=[150.0, 4.1]), "tip 4.00 ± 0.10 (3.90 to 4.10), 2026"),
    (release("sales", 1, 1.0, version=1) | {"delta": 1e-6}, "epsilon = 1 per person, for ever"),
]


@pytest.mark.parametrize(("given", "words"), CASES)
def test_what_a_number_is_worth_is_said(config, given, words):
    named = ElementTree.fromstring(drawn(given, config=config))
    for title in [*named.iter("title")]:
        title.text = ""
    assert words in "".join(named.itertext()).replace("  ", " ")


def test_without_a_configuration_what_a_metric_is_follows_from_its_mechanism():
    assert "zero is within the noise" in said(drawn(release("a", 1, 0.5, mechanism="steps")))
    assert "zero" not in said(drawn(release("a", 1, 0.5)))
    assert "zero" not in said(drawn(release("a", 1, 0.5, users=3, mechanism="best: one")))
    assert "zero" in said(drawn(release("a", 1, {"variance": 0.5}, low={"variance": -1}, high={"variance": 2})))
    assert "coordinate 1 1" in said(drawn(release("a", 1, [1.0, 2.0])))


def test_only_the_newest_version_is_drawn():
    text = said(drawn(release("a", 1, 1.0), release("a", 1, 7.0, version=2)))
    assert "version 2" in text
    assert "1.0 ±" not in text


def test_of_a_distribution_the_median_is_drawn():
    value = {"cdf": [0.5, 1.0], "histogram": [0.5, 0.5], "quantiles": {"0.1": 1.0, "0.45": 4.0, "0.9": 9.0}}
    assert "quantile 0.45 4" in said(drawn(release("a", 1, None), release("a", 2, value, low=value, high=value)))
    bins = {"cdf": [0.5, 1.0], "histogram": [0.5, 0.5]}
    assert "no release" in said(drawn(release("a", 1, bins)))


def test_too_many_groups_and_metrics_are_counted():
    text = said(drawn(*(release("a", 1, 5.0, group=f"g{n}") for n in range(MOST_PANELS + 5))))
    assert f"{MOST_PANELS} of {MOST_PANELS + 5} shown" in text
    assert "and 2 more metrics" in said(drawn(*(release(f"m{n}", 1, 5.0) for n in range(MOST_METRICS + 2))))


def test_a_slot_is_drawn_where_it_is_and_no_further():
    """Two slots with a silent one between them: two strokes, each of an hour."""
    given = [release("v", seq, 5.0, group=CELLS[0], every=HOUR, users=4) for seq in (1, 2, 4)]
    series = series_of(CELLS[0], "", records(given), is_mean=True)
    assert [point.end - point.begin for point in series.points if point.end] == [HOUR] * 3
    assert series.end == series.points[-1].end
    (path,) = [each for each in pieces(drawn(*given), "path") if each.get("fill") == "none"]
    assert path.get("d", "").count("M") == 2


def test_a_gap_breaks_the_line():
    given = [release("a", seq, None if seq == 3 else 5.0) for seq in range(1, 6)]
    (path,) = [each for each in pieces(drawn(*given), "path") if each.get("fill") == "none"]
    assert path.get("d", "").count("M") == 2
    markup = drawn(*given[:3])
    assert not list(pieces(markup, "circle"))


@pytest.mark.parametrize("every", [1, 20, 3600, 86_400, 40 * 86_400, 400 * 86_400, 5_000 * 86_400])
def test_an_axis_has_times_whatever_lies_between_releases(every):
    marks = [
        each.text for each in pieces(drawn(*(release("a", n, 5.0, every=every) for n in range(1, 9))), "text")
        if each.get("text-anchor") == "middle"
    ]  # fmt: skip
    assert 2 <= len(marks) <= 12
    assert len(set(marks)) > 1


def points(given: list[tuple[float, float, str]]) -> list[Point]:
    return [Point(n, None, value, value - width, value + width, why) for n, (value, width, why) in enumerate(given)]


SOME = st.lists(
    st.tuples(st.floats(-9, 9), st.floats(0, 5), st.sampled_from(["", "", "", NONE, UNKNOWN])), min_size=1, max_size=60
)


@examples(200)
@given(SOME, st.integers(1, 20))
def test_thinning_keeps_the_last_value_every_gap_and_all_noise(found, most):
    whole, kept = points(found), thinned(points(found), most)
    known = [each for each in whole if not each.missing]
    assert (kept[-1].value, kept[-1].missing) == (whole[-1].value, whole[-1].missing)
    assert [each for each in kept if each.missing] == [each for each in whole if each.missing]
    left = [each for each in kept if not each.missing]
    assert min((each.low for each in left), default=0) == min((each.low for each in known), default=0)
    assert max((each.high for each in left), default=0) == max((each.high for each in known), default=0)
    if len(known) == len(whole):
        assert len(kept) <= max(len(whole) if len(whole) <= most else 0, most + 1)


@examples(100)
@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e3), st.floats(1, 12))
def test_an_axis_is_divided_by_round_numbers(low, share, count):
    width = share * max(1.0, abs(low))
    found = ticks(low, low + width, count)
    assert len(found) <= count + 1.1
    assert all(low - width * 1e-3 <= each <= low + width * 1.001 for each in found)


def test_one_release_with_far_more_noise_does_not_flatten_the_others():
    found = series_of(
        None, "", records(release("a", n, 5.0, 1000.0 if n == 1 else 1.0) for n in range(1, 9)), is_mean=False
    )
    low, high = reach([found], zero=False)
    assert 4 > low > 5 - FAR
    assert 6 < high < 5 + FAR
    assert reach([], zero=False) == (0.0, 1.0)
    exact = series_of(None, "", records([release("a", 1, 300.0, 0)]), is_mean=False)
    assert reach([exact], zero=True)[0] == 0.0
    assert reach([exact], zero=False)[0] < 300 < reach([exact], zero=False)[1]


def test_a_configuration_says_how_long_a_window_is(config):
    assert [length_of(each.parts) for each in load(config).metric] == [None, None, 7 * 86_400_000_000]


def test_a_notebook_asks_for_html(tmp_path):
    (tmp_path / "r.jsonl").write_text(json.dumps(release("a", 1, 5.0)) + "\n")
    found = shoal.read(tmp_path / "r.jsonl")
    assert found._repr_html_() == found.to_html() == html_of(list(found), lambda *_: None)


@pytest.mark.parametrize(
    "odd",
    [
        {"low": 9.0, "high": 1.0},  # ends that are swapped
        {"value": {"0": 3, "\u00b2": 1, "7": 2}},
        {"value": []},
        {"at": "0001-01-01", "users": 3},
        {"at": "9999-12-31T23:59:59Z"},
    ],
)
def test_odd_releases_are_drawn(odd):
    some = [
        record_of(json.dumps(release("a", 1, 5.0) | odd).encode()),
        record_of(json.dumps(release("a", 2, 5.0)).encode()),
    ]
    assert "<svg" in html_of([each for each in some if isinstance(each, Release)], lambda *_: None)
