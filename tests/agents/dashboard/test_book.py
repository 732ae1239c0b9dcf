"""What the page keeps of releases: all kinds of values, thinned where they are many; nothing breaks it."""

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.agents.dashboard import book as module
from shoal.agents.dashboard.book import Book
from shoal.agents.dashboard.cells import ABSENT, MOST, THINNED, polygons
from shoal.agents.dashboard.snapshot import snapshot
from tests.support.effort import examples
from tests.support.releases import CELLS, lines, release, town


def taken(*releases: dict[str, Any], most: int = module.MOST_OF_ALL) -> Book:
    book = Book(most)
    for each in releases:
        book.take(json.dumps(each).encode())
    return book


def table(book: Book, metric: str = "m") -> dict[str, Any]:
    return next(each for each in book.tables() if each["name"] == metric)


def columns(book: Book, group: str = "") -> list[Any]:
    found: list[Any] = table(book)["groups"][group]
    return found


def test_a_number_is_kept_with_its_interval_and_what_it_rests_on():
    seq, total, stride, at, samples, sd, parts, extras, of_slots = columns(
        taken(release("m", 1, 3.0, 0.5), release("m", 2, 4.0))
    )
    assert (seq, total, stride, samples, sd, extras, of_slots) == (2, 2, 1, [10, 20], None, {}, None)
    assert at[1] - at[0] == 86_400
    assert parts == [[[3.0, 4.0], [2.5, 3.0], [3.5, 5.0]]]


def test_a_number_has_no_digits_that_its_noise_leaves_no_meaning_in():
    (value, low, high) = columns(taken(release("m", 1, 123.456789, 10)))[6][0]
    assert (value, low, high) == ([123.46], [113.46], [133.46])
    # and an exact one keeps all
    assert columns(taken(release("m", 1, 1234567.890625, 0)))[6][0][0] == [1234567.890625]


def test_every_kind_of_value_has_its_parts():
    coordinates = release("m", 1, [1.0, None], low=[0.0, None], high=[2.0, None])
    spread = release("m", 1, {"mean": 1.0, "variance": 4.0}, low={"mean": 0, "variance": 1}, high={"mean": 2})
    shares = {"cdf": [0.5, 1], "histogram": [0.5, 0.5], "quantiles": {"0.5": 3, "0.05": 1}}
    distribution = release("m", 1, shares, low=shares, high=shares)
    assert table(taken(coordinates))["parts"] == ["1", "2"]
    assert columns(taken(coordinates))[6] == [[[1.0], [0.0], [2.0]], [[None], [None], [None]]]
    assert table(taken(spread))["parts"] == ["mean", "variance"]
    assert columns(taken(spread))[6][1] == [[4.0], [1.0], [None]]
    assert table(taken(distribution))["parts"] == ["quantile 0.05", "quantile 0.5"]
    assert table(taken(distribution))["distribution"][""] == [[0.5, 0.5]] * 3


def test_no_release_is_a_gap_in_all_parts():
    found = taken(release("m", 1, [1, 2], low=[0, 0], high=[2, 3]), release("m", 2, None))
    assert [part[0] for part in columns(found)[6]] == [[1, None], [2, None]]


def test_a_noisy_number_of_samples_is_said_to_be_one():
    presence = release("m", 1, 2.0) | {"count": 120.5, "count_sd": 7.0, "relation": "add-remove"}
    del presence["samples"]
    assert columns(taken(presence))[4:6] == [[120.5], [7.0]]


def test_what_came_and_does_not_count_is_told():
    held = release("m", 1, 2.0, withheld={"samples": 7, "share": 0.25}, users=3, dropped=[1])
    assert columns(taken(held))[7] == {"withheld": {"samples": 7, "share": 0.25}, "users": 3}


def test_of_slots_each_has_its_users_and_its_error():
    found = taken(release("m", 1, 1.0, users=3, error=1.5), release("m", 2, 1.0), release("m", 3, None, users=4))
    assert columns(found)[8] == [[3, None, 4], [1.5, None, None]]


def test_a_record_without_a_group_is_no_release():
    strange = release("m", 1, 1.0)
    del strange["group"]
    found = taken(strange)
    assert (found.releases, found.others) == (0, {"of another kind": 1})


def test_a_repeated_release_counts_once():
    found = taken(release("m", 1, 1.0), release("m", 1, 1.0), release("m", 2, 1.0))
    assert (found.releases, found.others) == (2, {"repeated": 1})


def test_the_newest_version_is_shown_and_the_others_are_counted():
    new = [release("m", seq, 9.0, version=2) for seq in (1, 2)]
    found = taken(release("m", 1, 1.0), release("m", 2, 1.0), new[0], release("m", 3, 1.0), new[1])
    assert table(found)["version"] == 2
    assert columns(found)[6][0][0] == [9.0, 9.0]
    assert found.others == {"of an older version": 3}


def test_activations_are_kept_beside_the_releases():
    level = {"metric": "m", "group": "a", "version": 1, "level": 3, "at": "2026-03-01", "prior": 4.5, "epsilon": 0.1}
    shown = {"metric": "m", "group": "b", "version": 1, "kind": "shown", "at": "2026-03-02", "epsilon": 0.5}
    clip = {
        "metric": "m",
        "group": "b",
        "version": 1,
        "kind": "clip",
        "at": "2026-03-02",
        "high": 42.5,
        "epsilon": 0.22,
    }
    found = table(taken(level, shown, clip, release("m", 1, 1.0)))
    assert found["activated"] == 3
    assert [each[1:] for each in found["activations"]] == [
        ["a", 3, "level", 4.5, 0.1],
        ["b", None, "shown", None, 0.5],
        ["b", None, "clip", 42.5, 0.22],
    ]


def test_what_is_no_release_is_counted():
    book = Book()
    for line in (b'{"metric": "m", "val', b"[1]", None, b'{"metric": "m"}', b'{"reason": "bad-time"}'):
        assert book.take(line) is None
    assert book.others == {"of another kind": 5}


def test_numbers_that_no_page_can_draw_are_no_release_of_them():
    line = json.dumps(release("m", 1, 1.0)).replace('"value": 1.0', '"value": 1e999')
    book = Book()
    book.take(line.encode())
    assert (book.releases or book.others["of another kind"]) == 1
    assert "inf" not in str(list(book.tables())).lower()


def test_a_long_series_keeps_some_of_its_releases_and_the_last():
    found = taken(*(release("m", seq, float(seq), 0) for seq in range(1, 9003)))
    _, total, stride, _, samples, _, parts, *_ = columns(found)
    values = parts[0][0]
    assert total == 9002
    assert stride in (4, 8)
    assert 1000 < len(values) <= module.MOST_OF_ONE
    assert values[0] == 1
    assert values[-1] == 9002
    assert {later - value for value, later in zip(values, values[1:-1], strict=False)} == {stride}
    assert samples[-1] == 90_020


def test_many_groups_are_thinned_together_and_none_is_lost():
    found = taken(*town(days=70, groups=200), most=1500)
    kept = sum(len(group[3]) for each in found.tables() for group in each["groups"].values())
    assert kept < 3000
    assert found.releases == 70 * 14 + 10 * 200 + 24 * 5
    assert len(table(found, "visit")["groups"]) == 200


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@examples(200)
@given(st.dictionaries(st.sampled_from(sorted(release("m", 1, 1.0))), ANY), st.binary(max_size=20))
def test_whatever_comes_is_taken_or_counted(changed, rest):
    book = Book()
    book.take(json.dumps(release("m", 1, 1.0) | changed).encode())
    book.take(rest)
    assert book.releases + sum(book.others.values()) + sum(each["activated"] for each in book.tables()) >= 1
    for each in book.tables():
        for group in each["groups"].values():
            assert {len(side) for part in group[6] for side in part} == {len(group[3])}


def test_lines_of_the_towns_releases_are_all_releases():
    book = Book()
    for line in lines(town(groups=3)).splitlines():
        book.take(line)
    assert not book.others


def test_cells_are_polygons_and_other_groups_are_none():
    found = polygons(CELLS)
    assert found is not None
    assert sorted(found["cells"]) == sorted(CELLS)
    assert all(points.count(",") == 6 for points in found["cells"].values())
    assert polygons([]) is None
    assert polygons([*CELLS, "north"]) is None
    assert polygons(["0123456789abcde"]) is None  # looks like a cell, and is none


def test_a_map_of_thinned_releases_does_not_say_that_nothing_was_there():
    def absent(slots: int) -> str:
        found = [release("m", seq, 1.0, 0, group=CELLS[0]) for seq in range(1, slots)]
        (metric,) = snapshot(taken(*found), None)["metrics"]
        return str(metric["places"]["absent"])

    assert absent(9) == ABSENT
    assert absent(module.MOST_OF_ONE + 2) == THINNED


def test_of_too_many_cells_the_page_says_so():
    found = polygons([f"{number:015x}" for number in range(MOST + 1)])
    assert found is not None
    assert "20,001 groups" in found["missing"]


def test_without_what_knows_cells_the_page_says_what_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "h3", None)
    found = polygons(CELLS)
    assert found is not None
    assert "pip install 'shoal[geo]'" in found["missing"]
    assert polygons(["north"]) is None
