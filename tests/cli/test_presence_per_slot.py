"""What the commands say and do of statistics per slot that protect presence."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import h3
import orjson
import pytest

from shoal.agents.dashboard.file import page_by_place
from shoal.agents.map.releases import read_places
from shoal.mechanisms.forecast.observed import Observed
from shoal.mechanisms.forecast.presence import PlaceReport
from shoal.mechanisms.linear.words import people
from shoal.mechanisms.selection.first_crossing import FirstCrossing, falling
from shoal.models.config.file import load
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import plan_topic
from tests.cli.test_presence_in_words import said
from tests.cli.test_units import folder

__all__ = ["folder"]
HEAD = '[audit]\nurl = "sqlite:///log.db"\n[privacy]\nepsilon = 10\ndelta = 0.001\n'
METRIC = """
[[metric]]
name = "speed"
topic = "trips"
user = "bus"
value = "speed"
time = "at"
relation = "add-remove"
statistic = "mean"
range = [0, 64]
slot = "1h"
start = 2026-03-02T06:00:00Z
end = 2026-03-02T08:00:00Z
epsilon = 1
max_contributions = 4
"""
CELL = 'cell = { h3 = 8, lat = "lat", lon = "lon" }\n'
FOUND = CELL + "delta = 1e-9\n"
CENTRE = h3.latlng_to_cell(51.5, -0.12, 8)
OTHER = h3.latlng_to_cell(51.6, -0.12, 8)


def checked(metric: str) -> tuple[str, dict[str, Any]]:
    """The text and the JSON of a check."""
    Path("shoal.toml").write_text(HEAD + metric)
    return said("check", "shoal.toml").stdout, json.loads(said("check", "shoal.toml", "--json").stdout)


@pytest.mark.parametrize("keys", [1, 3])
def test_a_key_needs_as_many_people_as_fill_its_threshold_with_their_first_weight(keys: int) -> None:
    weights, unit = falling(keys)
    of = FirstCrossing(Fraction(1), Fraction(1, 10**9), 1, weights, unit, ends=True)
    needed = people(of, 1)
    assert (needed - 1) * weights[0] < of.threshold(1) <= needed * weights[0]
    assert needed == {1: 22, 3: 40}[keys]


def test_a_check_says_whose_presence_is_hidden_and_which_cells_are_shown(folder):
    text, fields = checked(METRIC + FOUND)
    assert (
        "  epsilon = 1, delta = 1e-9 per person and hour, in a week (any 7 days) up to epsilon = 168, with a delta "
        "that promises nothing, in a year (any 365 days) up to epsilon = 8760, with a delta that promises nothing: "
        "whether one person is there at all in one hour of event time, and all that is in their records of it, however "
        "often it is released; at most 4 samples of a person and hour count, over all cells "
        "together; cells that nobody declared are found in each slot anew, with epsilon = 0.5 of that and its "
        "delta: one is released once about 42 have come to it, each a person and hour; a person and hour counts so "
        "for the first cell of a slot that they are in, and with their samples in every cell that is released; the "
        "number of samples, which is released beside the value, has noise of standard deviation 16 in each slot"
    ) in text
    assert (fields["relation"], fields["metrics"][0]["relation"]) == ("add-remove", "add-remove")
    text, _ = checked(METRIC + f'{CELL}groups = ["{CENTRE}", "{OTHER}"]\nunit = "user-day"\n')
    assert "at most 4 samples of a person and day count, over all cells and slots together" in text
    assert "the 2 cells of groups are public, and released in every slot from start on whether anybody is there" in text
    text, _ = checked(METRIC + 'unit = "user"\n')
    assert "at most 4 samples of a person count, over all slots together; the number of samples" in text
    text, _ = checked(METRIC + FOUND + 'unit = "user-day"\nmax_groups = 3\n')
    assert "counts so for the first 3 cells of slots that they are in" in text


def test_a_plan_says_what_a_cell_is_worth_and_whom_it_needs(folder):
    Path("shoal.toml").write_text(HEAD + METRIC + FOUND)
    stated = ("plan", "shoal.toml", "--users", 4000, "--samples", 4, "--cells", 40)
    text, (fields,) = said(*stated).stdout, json.loads(said(*stated, "--json").stdout)["metrics"]
    assert fields["workload"] == {"users": 4000, "samples_per_user": 4.0, "cells": 40}
    as_stated = fields["by_users"][2]
    # 100 users of each cell; in the middle of the range each side has half of what the count's noise squares to
    assert (as_stated["users"], as_stated["samples"], as_stated["count_sd"]) == (4000, 400, pytest.approx(16, rel=1e-3))
    assert as_stated["noise_sd"] == pytest.approx(64 * as_stated["count_sd"] / 2 / 400)
    # what nobody gives costs noise; what is left out costs little here, so that fewer samples would do as well
    assert fields["recommended"]["max_contributions"] == 4
    assert fields["users_to_show_a_cell"] == 42
    shares = {row["share"]: row for row in fields["by_selection_share"]}
    assert shares[0.5]["users_to_show_a_cell"] == 42
    needed = [row["users_to_show_a_cell"] for row in shares.values()]
    assert needed == sorted(needed, reverse=True)
    # 42 users with 4 samples in the cell
    assert shares[0.5]["noise_sd"] == pytest.approx(64 * 16 / 2 / (42 * 4), rel=1e-3)
    assert "a cell shows in a slot to which about 42 users come first" in text
    assert "4,000 users with 4 samples each in a slot, over 40 cells alike" in text


def test_a_plan_without_cells_and_with_too_few_users(folder):
    Path("shoal.toml").write_text(HEAD + METRIC + 'unit = "user"\n')
    text = said("plan", "shoal.toml", "--users", 5).stdout
    assert "too few samples to release a mean" in text
    # 4 samples over two slots
    assert "5 users with 2 samples each in a slot\n" in text
    assert "selection" not in text
    assert "speed" in said("plan", "shoal.toml", "--users", 5000).stdout
    Path("shoal.toml").write_text(HEAD + METRIC.replace("end =", "#") + 'unit = "user"\n')
    assert "5 users with 0.011 samples each" in said("plan", "shoal.toml", "--users", 5).stdout


def test_a_skewed_pattern_leaves_out_what_few_users_give_beyond_the_cap(folder):
    """Both have 4 samples a user and slot on average; of the skewed ones most are of users who are over the cap."""
    Path("shoal.toml").write_text(HEAD + METRIC)
    stated = ("plan", "shoal.toml", "--users", 4000, "--samples", 4, "--json")
    (even,), (skewed,) = (json.loads(said(*stated, *more).stdout)["metrics"] for more in ((), ("--pattern", "skewed")))
    assert even["workload"] == skewed["workload"]
    samples = [[at["samples"] for at in plan["by_max_contributions"]] for plan in (even, skewed)]
    assert samples[0] == [4000, 8000, 16000, 16000, 16000]
    # everybody has at least one; then less and less comes of it
    assert samples[1][0] == pytest.approx(4000)
    assert samples[1] == sorted(samples[1])
    assert all(few < all_ for few, all_ in zip(samples[1][1:], samples[0][1:], strict=True))
    text = said(*stated[:-1], "--pattern", "skewed").stdout
    assert "4,000 users with 4 samples each in a slot on average, a few users with most" in " ".join(text.split())


def test_the_share_that_is_configured_has_a_row_of_its_own(folder):
    Path("shoal.toml").write_text(HEAD + METRIC + FOUND + "selection = { epsilon = 0.4 }\n")
    (fields,) = json.loads(said("plan", "shoal.toml", "--users", 4000, "--json").stdout)["metrics"]
    assert [row["share"] for row in fields["by_selection_share"]] == [0.1, 0.2, 0.35, 0.4, 0.5, 0.65, 0.8]


def test_a_plan_of_a_distribution_says_how_far_shares_are_off(folder):
    metric = METRIC.replace('"mean"', '"distribution"')
    Path("shoal.toml").write_text(HEAD + metric)
    stated = ("plan", "shoal.toml", "--users", 4000, "--samples", 4)
    text, (fields,) = said(*stated).stdout, json.loads(said(*stated, "--json").stdout)["metrics"]
    one, twice = (fields["by_users"][at]["noise_sd"] for at in (2, 3))
    assert one == pytest.approx(2 * twice)
    assert 0 < one < 0.01
    assert "that of the cumulative shares, on average over the bins" in " ".join(text.split())
    found = run_file(HEAD + metric, trips(300))
    assert found[0]["value"]["quantiles"]["0.5"] == pytest.approx(32, abs=2)
    assert found[1]["value"] is None


def test_no_plan_is_made_from_who_was_where(folder):
    Path("shoal.toml").write_text(HEAD + METRIC)
    (metric,) = load(Path("shoal.toml")).metrics
    with pytest.raises(ValueError, match="would tell who is there"):
        PlaceReport.plans(metric, Observed.__new__(Observed))


def run_file(text: str, events: list[bytes]) -> list[Any]:
    """The releases of a file run."""
    Path("shoal.toml").write_text(text)
    config = load(Path("shoal.toml"))
    plan = plan_topic(config, "trips", b"k" * 32, source_partitions=1, contributions_partitions=1)
    lines = [Line(number, event) for number, event in enumerate(events)]
    return [orjson.loads(one.value) for output in FileRun(plan).outputs(lines) for one in output.releases]


def trips(buses: int) -> list[bytes]:
    """Reports of buses that are in the centre, and one that is elsewhere."""
    lines = [
        {"bus": f"bus-{bus}", "at": f"2026-03-02T06:{bus % 60:02}:0{n}Z", "lat": 51.5, "lon": -0.12, "speed": 32}
        for n in range(4) for bus in range(buses)
    ]  # fmt: skip
    return [orjson.dumps(line) for line in (*lines, lines[0] | {"bus": "alone", "lat": 51.6})]


def test_a_run_releases_the_busy_cell_alone_and_a_map_says_what_is_protected(folder):
    releases = run_file(HEAD + METRIC + FOUND, trips(300))
    (busy,) = releases
    assert (busy["group"], busy["seq"], busy["at"]) == (CENTRE, 1, "2026-03-02T07:00:00Z")
    assert (busy["relation"], busy["algorithm"], busy["mechanism"]) == ("add-remove", "two-sided", "2 sides")
    assert busy["low"] < 32 < busy["high"]
    assert math.isclose(busy["count"], 1200, abs_tol=200)
    assert not {"samples", "users", "dropped", "error", "cell_epsilon"} & busy.keys()
    assert OTHER not in json.dumps(releases)
    places = read_places(enumerate(map(orjson.dumps, releases), 1), "releases.jsonl")
    assert places.first == "Whether a person was in a place is protected, and what they did there."
    assert places.absent == "not shown in this slot"
    html = page_by_place(places.lines, "speed")
    (metric,) = json.loads(html.partition('id="data">')[2].partition("</script>")[0])["metrics"]
    assert (metric["places"]["first"], metric["places"]["absent"]) == (places.first, places.absent)
    assert metric["groups"][CENTRE][4:6] == [[busy["count"]], [busy["count_sd"]]]  # about so many


def test_a_run_releases_declared_cells_in_every_slot(folder):
    releases = run_file(HEAD + METRIC + f'{CELL}groups = ["{CENTRE}", "{OTHER}"]\n', trips(300))
    assert [(one["at"][11:13], one["group"], one["seq"]) for one in releases] == [
        (hour, cell, seq) for hour, seq in (("07", 1), ("08", 2)) for cell in sorted([CENTRE, OTHER])
    ]
    values = {(one["group"], one["seq"]): one["value"] for one in releases}
    assert values[CENTRE, 1] == pytest.approx(32, abs=3)
    assert values[OTHER, 2] is None
