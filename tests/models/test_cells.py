"""In which cell an event counts."""

import h3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.cells import cell_reader
from shoal.models.config.cell import CellSection
from shoal.models.events import Refused, parse
from tests.support.cover import in_a_loop

WHERE = CellSection(h3=9, lat="at.lat", lon="at.lon")


@given(st.floats(-90, 90), st.floats(-180, 180))
def test_an_event_on_earth_has_a_cell_of_the_resolution(lat, lon):
    cell = cell_reader(WHERE, None)({"at": {"lat": lat, "lon": lon}}, b"")
    assert h3.is_valid_cell(cell)
    assert h3.get_resolution(cell) == 9


@in_a_loop
@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (b'{"at": {"lat": 90.001, "lon": 0}}', "bad-lat"),
        (b'{"at": {"lat": -91, "lon": 0}}', "bad-lat"),
        (b'{"at": {"lat": 1e400, "lon": 0}}', "bad-lat"),
        (b'{"at": {"lat": "52.5", "lon": 0}}', "bad-lat"),
        (b'{"at": {"lat": true, "lon": 0}}', "bad-lat"),
        (b'{"at": {"lat": null, "lon": 0}}', "bad-lat"),
        (b'{"at": {"lon": 0}}', "no-lat"),
        (b'{"at": 5}', "no-lat"),
        (b'{"at": {"lat": 90, "lon": 180.5}}', "bad-lon"),
        (b'{"at": {"lat": -90}}', "no-lon"),
    ],
)
def test_coordinates_that_are_not_on_earth_are_refused(event, reason):
    with pytest.raises(Refused) as refused:
        cell_reader(WHERE, None)(parse(event), event)
    assert refused.value.reason == reason


def test_a_group_is_a_place_too_and_without_either_there_is_one():
    assert cell_reader(None, "line")({"line": 7}, b"") == "7"
    with pytest.raises(Refused):
        cell_reader(None, "line")({}, b"")
    assert cell_reader(None, None)({}, b"") == ""
