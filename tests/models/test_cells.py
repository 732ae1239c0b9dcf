"""In which cell an event counts."""

import h3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.parts.per import Field, Hexagons
from shoal.models.cells import cell_reader
from shoal.models.events import Refusal
from tests.support.cover import in_a_loop
from tests.support.parsed import parsed

WHERE = Hexagons(9, "at.lat", "at.lon")


@given(st.floats(-90, 90), st.floats(-180, 180))
def test_an_event_on_earth_has_a_cell_of_the_resolution(lat, lon):
    cell = cell_reader(WHERE)({"at": {"lat": lat, "lon": lon}}, b"")
    assert h3.is_valid_cell(cell)
    assert h3.get_resolution(cell) == 9


@in_a_loop
@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (b'{"at": {"lat": 90.001, "lon": 0}}', "bad-lat"),
        (b'{"at": {"lat": -91, "lon": 0}}', "bad-lat"),
        (b'{"at": {"lat": 1e400, "lon": 0}}', "bad-lat"),
        (b'{"at": {"lat": "north", "lon": 0}}', "bad-lat"),
        (b'{"at": {"lat": true, "lon": 0}}', "bad-lat"),
        (b'{"at": {"lat": null, "lon": 0}}', "bad-lat"),
        (b'{"at": {"lon": 0}}', "no-lat"),
        (b'{"at": 5}', "no-lat"),
        (b'{"at": {"lat": 90, "lon": 180.5}}', "bad-lon"),
        (b'{"at": {"lat": -90}}', "no-lon"),
    ],
)
def test_coordinates_that_are_not_on_earth_are_refused(event, reason):
    assert cell_reader(WHERE)(parsed(event), event) == Refusal(reason)


def test_a_group_is_a_place_too():
    assert cell_reader(Field("line"))({"line": 7}, b"") == "7"
    assert cell_reader(Field("line"))({}, b"") == Refusal("no-group")


def test_coordinates_may_be_text():
    read = cell_reader(WHERE)
    expected = read({"at": {"lat": 52.5, "lon": -0.1}}, b"")
    assert read({"at": {"lat": " 52.50", "lon": "-.1"}}, b"") == expected
    for bad in ("nan", "inf", "52,5", ""):
        assert read({"at": {"lat": bad, "lon": 0}}, b"") == Refusal("bad-lat")
