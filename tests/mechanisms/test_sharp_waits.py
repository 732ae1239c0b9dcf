"""How long the sharp mean waits, a function of the pattern, and that it does not wait for ever."""

from fractions import Fraction

from shoal.mechanisms.grid import Grid
from shoal.mechanisms.sharp import Sharp
from shoal.mechanisms.statistic import Contribution

MEAN = Sharp(
    grid=Grid(Fraction(0), Fraction(1), 64), epsilon=Fraction(1), max_contributions=8, users=100_000, horizon=80
)


def test_it_begins_with_enough_units_or_samples() -> None:
    assert MEAN.least_units == 1400
    assert MEAN.ready_units == 4000
    assert MEAN.is_ready(4000, 4000, 1)
    assert MEAN.is_ready(10, 1200, 1)
    assert not MEAN.is_ready(3999, 1199, 1)


def test_it_begins_with_half_of_the_expected_units_where_that_is_enough_for_a_choice() -> None:
    def ready(users: int) -> int:
        return Sharp(grid=MEAN.grid, epsilon=Fraction(1), max_contributions=8, users=users).ready_units

    assert [ready(users) for users in (1, 1000, 4000, 8000, 80_000)] == [4000, 1400, 2000, 4000, 4000]


def test_it_waits_a_sixteenth_of_the_horizon_for_units_and_an_eighth_at_most() -> None:
    assert MEAN.patience == 5
    assert not MEAN.is_ready(1400, 1400 // 2, 4)
    assert MEAN.is_ready(1400, 1400 // 2, 5)
    assert not MEAN.is_ready(1399, 1399 // 2, 9)
    assert MEAN.is_ready(1, 1, 10)
    assert not MEAN.is_ready(0, 10**6, 10**6)  # nobody's first sample is there


def test_a_group_that_few_visit_says_something_in_the_end() -> None:
    # given a unit per tick, of whom nothing can be asked privately
    releaser = MEAN.releaser(bytes(32), b"")
    samples = []
    for tick in range(30):
        releaser.add(Contribution(tick, "", MEAN.buckets.of(40), 0, 1, 40))
        activations = releaser.close()
        assert len(activations) == (tick == 9)
        assert all(activation.epsilon == 0 for activation in activations)
        estimate = releaser.estimate()
        assert estimate is not None
        samples.append(estimate.samples)
    # then it says that it knows nothing, until an eighth of the horizon; from then on it counts everyone
    assert samples == [0] * 9 + list(range(10, 31))
