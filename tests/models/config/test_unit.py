"""Units: their periods, how many of one another they touch, and what that costs."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.parts.unit import Unit
from shoal.mechanisms.privacy.accounting import Loss
from shoal.mechanisms.spec import ADD_REMOVE, VALUES
from shoal.models.config.file import Config, load
from shoal.models.config.section import DAY
from shoal.models.config.unit import charge, most_steps, most_touched, parse_unit
from shoal.models.errors import ConfigError
from tests.support.cover import in_a_loop

NONE, ONE = Fraction(0), Fraction(1)
PRESENCE = (ADD_REMOVE, ADD_REMOVE)
lengths = st.integers(1, 60)


@given(lengths, lengths)
def test_so_many_units_of_a_metric_touch_one_of_the_ledgers(ledger, length):
    # given every alignment that two kinds of periods can have: they repeat after the product of their lengths
    found = most_touched(Unit("user-l", ledger), Unit("user-m", length))
    most = max(
        len({time // length for time in range(start, start + ledger)}) for start in range(0, ledger * length, ledger)
    )
    # then the formula is the most, not only a bound
    assert found == most


@given(lengths, lengths)
def test_a_unit_that_is_cut_goes_and_comes_back(ledger, length):
    """Of each alignment: the metric's units that lie wholly in one of the ledger's, and twice those that do not."""
    found = most_steps(Unit("user-l", ledger), Unit("user-m", length), PRESENCE)
    taken = []
    for start in range(0, ledger * length, ledger):
        inside = Counter(time // length for time in range(start, start + ledger))
        taken.append(sum(1 if moments == length else 2 for moments in inside.values()))
    # never less than it takes, and at most what two more that are cut would add
    assert found is not None
    assert max(taken) <= found <= max(taken) + 2
    if ledger % length == 0 or length % ledger == 0:
        assert found == max(taken)


@in_a_loop
@pytest.mark.parametrize(
    ("ledger", "unit", "by_values", "by_presence"),
    [
        ("user", "user", 2, 1),
        ("user-day", "user", 2, 2),  # some of a person's records go, others stay
        ("user-day", "user-day", 2, 1),
        ("user-day", "user-12h", 4, 2),
        ("user-day", "user-7h", 10, 7),
        ("user-day", "user-week", 2, 2),
        ("event", "event", 2, 1),
        ("event", "user", 2, 2),
        ("user", "user-day", None, None),
        ("user", "event", None, None),
    ],
)
def test_a_metric_of_add_remove_is_charged_by_the_relation_of_its_ledger(ledger, unit, by_values, by_presence):
    units = parse_unit(ledger), parse_unit(unit)
    assert most_steps(*units, (VALUES, ADD_REMOVE)) == by_values
    assert most_steps(*units, PRESENCE) == by_presence
    for steps, relations in ((by_values, (VALUES, ADD_REMOVE)), (by_presence, PRESENCE)):
        if steps is None:
            with pytest.raises(ValueError, match="has any number of them"):
                charge(*units, ONE, NONE, relations=relations)
        else:
            group = Loss(ONE, Fraction(1, 10**9)).of_group(steps)
            assert charge(*units, ONE, Fraction(1, 10**9), relations=relations) == (group.epsilon, group.delta)


def test_both_bounds_of_two_steps_are_reached_by_a_capped_sum():
    """The worst that m counted samples do to both sums together, in ranges: m where all go, 2 m where a part does."""
    cap, streams = 3, list(product((0, 1), repeat=4))  # a person's samples, at an end of the range each

    def sums(samples):
        counted = samples[:cap]
        return sum(counted), len(counted) - sum(counted)

    def moved(one, other):
        return sum(abs(a - b) for a, b in zip(sums(one), sums(other), strict=True))

    gone = max(moved(samples, ()) for samples in streams)
    swapped = max(moved(one, other) for one, other in product(streams, repeat=2))
    longer = [(0,) * cap + (1,) * cap, (1,) * cap + (0,) * cap]
    partly = max(moved(samples, samples[first:]) for samples in longer for first in range(cap + 1))
    assert gone == cap
    assert swapped == partly == 2 * cap


@pytest.mark.parametrize("epsilon", [NONE, ONE])
def test_what_publishes_who_contributes_has_no_cost_where_that_is_hidden(epsilon):
    with pytest.raises(ValueError, match="relation values in a ledger that counts by add-remove: it publishes who"):
        charge(parse_unit("user"), parse_unit("user"), epsilon, NONE, relations=(ADD_REMOVE, VALUES))


@in_a_loop
@pytest.mark.parametrize(
    ("ledger", "unit", "touched"),
    [
        ("user", "user", 1),
        ("user", "user-day", None),
        ("user", "event", None),
        ("user-day", "user", 1),
        ("user-day", "user-24h", 1),
        ("user-day", "user-week", 1),  # a week begins at midnight, 30 hours do not always
        ("user-day", "user-30h", 2),
        ("user-day", "user-hour", 24),
        ("user-day", "user-7h", 5),
        ("user-day", "event", None),
        ("event", "event", 1),
        ("event", "user-day", 1),
        ("event", "user", 1),
    ],
)
def test_coarser_and_finer_units(ledger, unit, touched):
    assert most_touched(parse_unit(ledger), parse_unit(unit)) == touched


@given(st.sampled_from([1, 2, 5, 24, 288]), st.fractions("1/1000000", 3), st.fractions("1/1000000000000", "1/10"))
def test_several_units_lose_epsilon_so_often_and_delta_by_group_privacy(count, epsilon, delta):
    day, part = Unit("user-day", DAY), Unit("user-part", DAY // count)
    exact = float(delta) * math.fsum(math.exp(min(700, i * float(epsilon))) for i in range(count))
    if exact >= 1.01:
        with pytest.raises(ValueError, match="delta would be 1 or more"):
            charge(day, part, epsilon, delta)
        return
    if exact <= 0.99:
        cost, deltas = charge(day, part, epsilon, delta)
        assert cost == count * epsilon
        assert deltas >= count * delta
        assert math.isclose(deltas, exact, rel_tol=1e-9)


def test_a_delta_beyond_all_numbers_is_none():
    with pytest.raises(ValueError, match="up to 1000 of them, and delta would be 1 or more"):
        charge(Unit("user-l", 1000), Unit("user-m", 1), Fraction(10**6), Fraction(1, 10**9))


def test_delta_is_rounded_up_and_never_below_what_one_unit_loses():
    epsilon, delta = Fraction(1, 10**59), Fraction(1, 10**9)
    assert charge(Unit("a", 2), Unit("b", 1), epsilon, delta)[1] >= delta * (1 + Fraction(1, 1) + epsilon)
    assert charge(Unit("a", 2), Unit("b", 2), epsilon, delta) == (epsilon, delta)


def test_an_epsilon_of_more_digits_than_are_computed_costs_no_less():
    """200 digits of e**epsilon do not tell 1e-199 from 1.5e-199, nor 1e-201 from 0."""
    for epsilon in (Fraction(15, 10**200), Fraction(1, 10**201), Fraction(1, 10**300)):
        cost, deltas = charge(Unit("a", 5), Unit("b", 1), epsilon, Fraction(1, 100))
        assert cost == 5 * epsilon
        assert Fraction(5, 100) <= deltas <= Fraction(51, 1000)


@in_a_loop
@pytest.mark.parametrize("text", ["users", "user-", "user-0s", "user-1y", "person-day", "user_day", "user-99999999d"])
def test_what_is_no_unit_is_refused(text):
    with pytest.raises(ValueError, match="write user"):
        parse_unit(text)


def test_units_of_one_length_are_one_whatever_their_names():
    assert parse_unit("user-week") == parse_unit("user-7d") == parse_unit("user-168h") != parse_unit("user-day")
    assert parse_unit("user-7d").name == "user-7d"


# ---------------------------------------------------------------- in a configuration


def metric(**changes):
    usual = {
        "name": "a", "topic": "t", "user": "u", "value": "x", "time": "at", "statistic": "sum", "range": (0, 1),
        "epsilon": 1, "max_contributions": 3, "every": "1h",
    }  # fmt: skip
    return {name: value for name, value in (usual | changes).items() if value is not None}


def config(*metrics, **privacy) -> Config:
    named = [one | {"name": f"m{index}"} for index, one in enumerate(metrics)]
    return Config.model_validate({"privacy": {"epsilon": 10} | privacy, "metric": named})


def test_the_ledger_has_its_metrics_common_unit_or_the_one_it_was_told():
    day, event = metric(unit="user-day"), metric(unit="event", max_contributions=None)
    assert config(metric()).unit == "user"
    assert config(day, day | {"unit": "user-24h"}).unit in ("user-day", "user-24h")
    assert config(day, metric()).unit == "user"
    assert config(event).unit == "event"
    count = metric(unit="event", max_contributions=None, statistic="count", range=None)
    assert (config(count, day).unit, config(count).unit) == ("user-day", "event"), "a count costs nothing"
    assert config(day, metric(), unit="user-week").unit == "user-week"


def test_a_copy_with_other_metrics_has_their_unit():
    """A charge by the unit of the metrics before would be too small."""
    whole = config(metric(unit="user-day"), metric())
    assert whole.unit == "user"
    assert whole.model_copy(update={"metric": whole.metric[:1]}).unit == "user-day"


def test_a_metric_is_charged_as_often_as_its_unit_touches_the_ledgers():
    five = metric(unit="user-5h", epsilon="0.1")
    whole = config(five, metric(), unit="user-day")
    assert [whole.charge_of(one.parts) for one in whole.metric] == [(Fraction("0.6"), NONE), (ONE, NONE)]


def test_a_count_costs_nothing_whatever_its_unit():
    count = metric(statistic="count", unit="event", max_contributions=None, epsilon=None, range=None)
    whole = config(count, metric())
    assert whole.charge_of(whole.metric[0].parts) == (NONE, NONE)


TOML = """
[privacy]
epsilon = 10
{privacy}
[[metric]]
name = "a"
topic = "t"
user = "u"
value = "x"
time = "at"
statistic = "sum"
range = [0, 1]
epsilon = 1
every = "1h"
{metric}
"""
CAP = "max_contributions = 3\n"


@in_a_loop
@pytest.mark.parametrize(
    ("privacy", "more", "message"),
    [
        (
            'unit = "user"',
            CAP + 'unit = "user-day"',
            'metric "a": unit user-day under a ledger per person: one person has any number of them, and epsilon as '
            'often; set [privacy] unit = "user-day", or unit = "user" here',
        ),
        (
            'unit = "user-day"',
            'unit = "event"',
            'metric "a": unit event under a ledger per person and day: one person and day has any number of them',
        ),
        (
            'delta = 0.1\nunit = "user-week"',
            CAP + 'unit = "user-hour"\ndelta = 1e-6',
            "one person and week has up to 168 of them, and delta would be 1 or more",
        ),
        ('unit = "people"', CAP, "[privacy]: unit 'people' does not exist; write user, user-day"),
        (
            'unit = "user-day"',
            'unit = "event"',
            'set [privacy] unit = "event", or unit = "user-day", or max_events_per_user here',
        ),
        (
            'delta = 0.1\nunit = "user"',
            'unit = "event"\nmax_events_per_user = 16\ndelta = 1e-6',
            'one person has up to 16 of them, and delta would be 1 or more; set [privacy] unit = "event", or unit',
        ),
        (
            "",
            CAP + "max_events_per_user = 3",
            "max_events_per_user is for unit event; other units have max_contributions",
        ),
        ("", 'unit = "event"\nmax_events_per_user = 0', "max_events_per_user"),
        ("", CAP + 'unit = "event"', "max_contributions is not for unit event"),
        ("", 'unit = "event"\nmax_groups = 2', "max_groups is not for unit event"),
        ("", 'max_per_group = 3\ngroup = "g"\nunit = "event"', "max_per_group is not for unit event"),
        ("", 'unit = "user-day"', "max_contributions is missing; add it"),
    ],
)
def test_what_bounds_nobodys_loss_is_refused(tmp_path, privacy, more, message):
    path = tmp_path / "shoal.toml"
    path.write_text(TOML.format(privacy=privacy, metric=more))
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ledger", ["user", "user-day", "event"])
@pytest.mark.parametrize("delta", ["0", "1e-6"])
def test_events_of_which_a_user_has_so_many_are_charged_so_often(tmp_path, ledger, delta):
    """From events to users by group privacy, and from users to events for nothing."""
    path = tmp_path / "shoal.toml"
    events = f'unit = "event"\nmax_events_per_user = 3\ndelta = {delta}\n'
    path.write_text(TOML.format(privacy=f'delta = 0.1\nunit = "{ledger}"', metric=events))
    loaded = load(path)
    event = Loss(loaded.metric[0].epsilon, Fraction(delta))
    assert Loss(*loaded.charge_of(loaded.metric[0].parts)) == event.of_group(1 if ledger == "event" else 3)


def test_a_unit_that_the_ledgers_holds_a_number_of_is_taken(tmp_path):
    path = tmp_path / "shoal.toml"
    path.write_text(TOML.format(privacy='unit = "user-day"', metric=CAP + 'unit = "user-12h"'))
    found = load(path)
    assert found.charge_of(found.metric[0].parts) == (2 * ONE, NONE)
