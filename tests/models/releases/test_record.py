"""The reader of releases takes whatever bytes come: a record, or None; odd fields are None."""

import json
from datetime import UTC, datetime

import pytest

from shoal.mechanisms.statistic import OF_CLIP, OF_KEY
from shoal.models.releases.record import Activation, Release, record_of
from tests.support.releases import release


@pytest.mark.parametrize(
    "raw",
    [None, b"", b"\xff", b"[]", b"{}", b'{"metric":"a","seq":1,"version":1,"at":"2026-01-05","value":1}',
     b'{"metric":"a","group":null,"seq":0,"version":1,"at":"2026-01-05","value":1}',
     b'{"metric":"a","group":3,"seq":1,"version":1,"at":"2026-01-05","value":1}',
     b'{"metric":"a","group":null,"seq":1,"version":1,"at":"soon","value":1}'],
)  # fmt: skip
def test_what_is_no_release_is_none(raw):
    assert record_of(raw) is None


def test_odd_fields_are_left_out_and_not_believed():
    odd = release("a", 1, 5.0) | {"epsilon": "much", "users": True, "unit": 7, "withheld": 3, "nodes": "x"}
    found = record_of(json.dumps(odd | {"samples": float("1e300"), "value": [1, "x", None]}).encode())
    assert isinstance(found, Release)
    assert (found.epsilon, found.users, found.unit, found.withheld_samples, found.nodes) == (None,) * 5
    assert [each.value for each in found.numbers] == [1, None, None]


@pytest.mark.parametrize("value", [[], {}, {"quantiles": {}}, {"histogram": []}])
def test_an_empty_value_is_one_number_that_is_missing(value):
    found = record_of(json.dumps(release("a", 1, 5.0) | {"value": value, "low": None}).encode())
    assert isinstance(found, Release)
    assert [each.value for each in found.numbers] == [None]
    assert str(found).endswith("no release")


def test_whole_numbers_that_no_table_holds_are_left_out():
    found = record_of(json.dumps(release("a", 1, 5.0) | {"users": 1 << 63, "dropped": (1 << 63) - 1}).encode())
    assert isinstance(found, Release)
    assert (found.users, found.dropped) == (None, (1 << 63) - 1)
    assert record_of(json.dumps(release("a", 1, 5.0) | {"seq": 1 << 63}).encode()) is None


def test_a_release_is_one_line_for_people():
    found = record_of(
        json.dumps(release("basket", 1, 34.6123, 1.3, group="BE")).encode(), lambda metric, version: 86_400_000_000
    )
    assert isinstance(found, Release)
    assert str(found) == "2026-03-02  basket BE  34.6 ± 1.3 (33.3 to 36.0)"
    assert (found.since, found.released) == (datetime(2026, 3, 1, tzinfo=UTC), True)


def test_a_line_of_a_distribution_leaves_out_its_bins():
    value = {"cdf": [0.5, 1], "histogram": [0.5, 0.5], "quantiles": {"0.5": 4.0}}
    found = record_of(json.dumps(release("a", 1, value, low=value, high=value)).encode())
    assert isinstance(found, Release)
    assert str(found) == "2026-03-02  a  quantile 0.5 4 exactly"


def test_a_slot_before_the_first_year_has_no_start():
    early = release("a", 1, 1.0) | {"at": "0001-01-01T00:00:01Z"}
    found = record_of(json.dumps(early).encode(), lambda metric, version: 86_400_000_000)
    assert isinstance(found, Release)
    assert found.since is None


@pytest.mark.parametrize("value", ["1", True, "much"])
def test_a_release_whose_value_is_no_number_is_none(value):
    assert record_of(json.dumps(release("a", 1, value)).encode()) is None


def test_nodes_beyond_64_bits_are_integers():
    def nodes(found):
        record = record_of(json.dumps(release("a", 1, 5.0) | {"nodes": found}).encode())
        assert isinstance(record, Release)
        return record.nodes

    assert nodes([3, str(1 << 70)]) == (3, 1 << 70)
    assert [nodes(odd) for odd in (None, [1.5], ["x"])] == [None] * 3


def test_a_number_of_samples_with_noise_has_its_deviation():
    exact = release("a", 1, 5.0, samples=7, count=9.5, count_sd=2)
    noisy = exact | {"samples": None}
    found = [record_of(json.dumps(each).encode()) for each in (exact, noisy)]
    assert [each.counted for each in found if isinstance(each, Release)] == [(7, None), (9.5, 2)]


BEGUN = {"metric": "a", "group": "x", "version": 1, "at": "2026-03-02", "epsilon": 0.5}


@pytest.mark.parametrize(
    ("fields", "number", "around"),
    [
        ({"level": 3, "prior": [1.5, None]}, 3, (1.5, None)),
        ({"kind": "shown"}, OF_KEY, None),
        ({"kind": "clip", "high": 20}, OF_CLIP, 20),
    ],
)
def test_every_activation_has_a_number_in_the_log(fields, number, around):
    found = record_of(json.dumps(BEGUN | fields).encode())
    assert isinstance(found, Activation)
    assert (found.number, found.around) == (number, around)


@pytest.mark.parametrize("odd", [{}, {"level": "3"}, {"kind": "other"}, {"level": 1, "version": 0}])
def test_what_is_no_activation_is_none(odd):
    assert record_of(json.dumps(BEGUN | odd).encode()) is None


def test_equal_records_are_one_in_a_set():
    raw = json.dumps(release("a", 1, [1.0, 2.0])).encode()
    assert len({record_of(raw), record_of(raw)}) == 1


@pytest.mark.parametrize(("until", "year"), [("2026-03-02T00:00:00Z", 2026), ("soon", None), (7, None)])
def test_a_time_to_wait_for_is_one_or_none(until, year):
    found = record_of(json.dumps(release("a", 1, 5.0) | {"waiting": {"until": until}}).encode())
    assert isinstance(found, Release)
    assert getattr(found.waits_until, "year", None) == year


def test_a_quantile_of_another_name_has_none():
    found = record_of(json.dumps(release("a", 1, {"quantiles": {"much": 1.0, "0.5": 2.0}})).encode())
    assert isinstance(found, Release)
    assert [(each.quantile, each.value) for each in found.numbers] == [(None, 1.0), (0.5, 2.0)]


def test_a_line_of_a_number_without_an_interval_has_its_time_of_day():
    found = record_of(json.dumps(release("a", 1, 5.0, every=3600, low=None)).encode())
    assert str(found) == "2026-03-01 01:00  a  5"
