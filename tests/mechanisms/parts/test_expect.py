"""A part that a form of metric lacks is an error of the program, and says what was there instead."""

import pytest

from shoal.mechanisms.parts.at import EachContribution, Slots, Steps
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.lengths import Even


def test_a_part_of_another_class_is_refused_with_its_fields() -> None:
    slot = Slots(Even(5))
    assert expect(slot, Steps, Slots) is slot
    with pytest.raises(TypeError, match=r"a metric of this form has Steps or EachContribution, not Slots\(.*5"):
        expect(slot, Steps, EachContribution)
