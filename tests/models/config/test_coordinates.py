"""Values with several coordinates: what each of them may be, and what is refused."""

from fractions import Fraction

import pytest

from shoal.mechanisms.parts.by import Full, MultiTree
from shoal.models.config.file import load
from shoal.models.errors import ConfigError
from tests.models.config.test_config import GOOD, written
from tests.support.cover import in_a_loop

PLANE = [('value = "amount"', 'value = ["x", "y.z"]'), ("[0, 200]", "[[0, 1], [-5, 5]]")]


def plane(*more: tuple[str, str]) -> str:
    text = GOOD
    for old, new in [*PLANE, *more]:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def test_a_mean_has_eight_coordinates_at_most(tmp_path):
    for count, refused in ((8, False), (9, True)):
        names, ranges = [f"x{n}" for n in range(count)], [[0, 1]] * count
        text = GOOD.replace('"amount"', str(names)).replace("[0, 200]", str(ranges))
        if refused:
            with pytest.raises(ConfigError, match="value has 9 coordinates, and a mean without a decay 8 at most"):
                load(written(tmp_path, text))
        else:
            assert len(load(written(tmp_path, text)).metrics[0].names) == 8


def test_a_value_may_have_several_coordinates_each_with_a_range(tmp_path):
    more = ('"full"', '"multi-tree"\nprior = [0.5, -3]\nsigma = ["0.1", 2]')
    metric = load(written(tmp_path, plane(more))).metrics[0]
    assert metric.names == ("x", "y.z")
    assert metric.ranges == ((Fraction(0), Fraction(1)), (Fraction(-5), Fraction(5)))
    assert isinstance(metric.by, MultiTree)
    assert metric.by.priors == (Fraction(1, 2), Fraction(-3))
    assert metric.by.sigmas == (Fraction(1, 10), Fraction(2))
    one = load(written(tmp_path, GOOD)).metrics[0]
    assert one.names == ("amount",)
    assert one.ranges == ((Fraction(0), Fraction(200)),)
    assert isinstance(one.by, Full)
    assert one.by.sigmas == (None,)


@in_a_loop
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("[-5, 5]]", "[5, -5]]"), "range is reversed or empty"),
        (("[-5, 5]]", "[-5, 5], [0, 1]]"), "range must be a list of 2, one for each value"),
        (('"full"', '"multi-tree"\nprior = 0.5'), "prior must be a list of 2, one for each value"),
        (('"full"', '"multi-tree"\nprior = [0.5]'), "prior must be a list of 2, one for each value"),
        (('"full"', '"multi-tree"\nprior = [0.5, 7]'), "prior lies outside the range"),
        (('"full"', '"full"\nsigma = 1'), "sigma must be a list of 2, one for each value"),
        (('"full"', '"full"\nsigma = [1, 0]'), "sigma must be greater than 0"),
        (('"full"', '"sharp"\nsigma = [1, 2]'), "sharp takes a sigma for one value; use several metrics, or an algori"),
        (("max_contributions = 64", 'max_per_group = 64\ngroup = "y"'), "field 'y.z' is a value and 'y' is pattern"),
        (("max_contributions = 64", 'max_per_group = 64\ngroup = "x"'), "field 'x' is a value and 'x' is pattern"),
    ],
)
def test_each_coordinate_is_checked(tmp_path, more, message):
    with pytest.raises(ConfigError, match="^[^\n]*$") as caught:
        load(written(tmp_path, plane(more)))
    assert message in str(caught.value)
