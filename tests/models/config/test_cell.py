"""What a configuration may say of places and slots."""

from dataclasses import replace
from fractions import Fraction

import pytest

from shoal.mechanisms.grid import Grid
from shoal.mechanisms.parts.expect import expect
from shoal.mechanisms.parts.hides import PerCell
from shoal.mechanisms.parts.lengths import Even
from shoal.mechanisms.slot.statistic import Slotted
from shoal.models.config.file import load
from shoal.models.errors import ConfigError
from tests.models.config.test_config import written
from tests.support.cover import in_a_loop

HOUR = 3_600_000_000
SLOTS = """
[privacy]
epsilon = 4.0
[[metric]]
name = "speed"
topic = "trips"
user = "bus"
value = "speed"
time = "at"
statistic = "mean"
range = [0, 65]
slot = "1h"
cell = { h3 = 8, lat = "lat", lon = "lon" }
max_per_group = 64
epsilon = 1.0
"""
CELL = 'cell = { h3 = 8, lat = "lat", lon = "lon" }'
IN_CELLS, ALONE = f"{CELL}\nmax_per_group = 64", "max_contributions = 64"
REFUSED = [
    ('slot = "1h"', "", "cell is for statistics per slot; add slot, or remove it"),
    ('slot = "1h"', 'slot = "0s"', "slot must be longer than 0s"),
    ('slot = "1h"', 'slot = "1h"\nevery = "1h"', "every is not for statistics per slot"),
    ('slot = "1h"', 'slot = "1h"\nstep = "1h"', "step is now every"),
    ('slot = "1h"', 'slot = "1h"\nmax_gap = 9', "max_gap is for sums, counts, variances and means with a decay"),
    ('slot = "1h"', 'slot = "1h"\nmax_contributions = 9', "max_contributions limits all groups together"),
    ("max_per_group = 64", "max_contributions = 64", "max_contributions limits all groups together, and here each has"),
    ("max_per_group = 64\n", "", "max_per_group is missing; add it"),
    (IN_CELLS, "max_per_group = 64", "max_per_group limits each group, and there is no group; use max_con"),
    ('slot = "1h"', 'slot = "1h"\nmax_cells = 3', "max_cells is now max_groups"),
    ('slot = "1h"', 'slot = "1h"\ndecay = { kind = "none" }', "decay is not for statistics per slot"),
    ('slot = "1h"', 'slot = "1h"\nlife = "1d"', "life is not for statistics per slot"),
    ('slot = "1h"', 'slot = "1h"\nmax_groups_per_user = 3', "max_groups_per_user is now max_groups"),
    ('slot = "1h"', 'slot = "1h"\nmax_groups = 0', "max_groups must be greater than or equal to 1"),
    ('slot = "1h"', 'slot = "1h"\nmax_slots = 2', "max_slots is for units longer than a slot"),
    ('slot = "1h"', 'slot = "1h"\nunit = "user"', "max_slots is missing: unit user has many slots"),
    ('slot = "1h"', 'slot = "1h"\nunit = "user-day"', "max_slots is missing: unit user-day has many slots"),
    ('slot = "1h"', 'slot = "1h"\nunit = "user-day"\nmax_slots = 25', "max_slots: a user-day has 24 slots"),
    ('slot = "1h"', 'slot = "1h"\nunit = "user-90m"\nmax_slots = 2', "unit user-90m is not a whole number of slots"),
    ('slot = "1h"', 'slot = "1h"\nunit = "event"', "unit event is not for statistics per slot; use user-slot"),
    ('slot = "1h"', 'slot = "1h"\nunit = "user-moon"', "unit 'user-moon' has no period"),
    ('slot = "1h"', 'slot = "1h"\ngroup = "line"', "cell and group both say where an event belongs; keep one"),
    ('slot = "1h"', 'slot = "1h"\ndelta = 1e-9', "delta must be 0: best is pure differential privacy"),
    ('slot = "1h"', 'slot = "1h"\nalgorithm = "few-users"', "delta must be above 0: few-users is approximate"),
    ('slot = "1h"', 'slot = "1h"\nsigma = 3', "sigma of a statistic per slot is for few-users"),
    ('slot = "1h"', 'slot = "1h"\nprior = 3', 'prior of a statistic per slot is "few-users", or none'),
    ('slot = "1h"', 'slot = "1h"\nalgorithm = "levy"\nprior = "few-users"', "for a mean per slot with algorithm best"),
    ('slot = "1h"', 'slot = "1h"\nalgorithm = "sharp"', "sharp is not for a mean per slot; use one of: best"),
    ('slot = "1h"', 'slot = "1h"\nwithheld = true', "withheld is for means without a decay; a slot says what is"),
    ('slot = "1h"', 'slot = "1h"\nbins = 9', "bins is for statistic distribution; remove it"),
    ('slot = "1h"', 'slot = "1h"\nquantiles = [0.5]', "quantiles is for statistic distribution; remove it"),
    ('slot = "1h"', 'slot = "1h"\nacross_cells = "drop"', "across_cells must be 'chop-user'"),
    ('slot = "1h"', 'slot = "1h"\ncontribution_cap = "mean"', "contribution_cap"),
    ('slot = "1h"', 'slot = "1h"\nmin_users = 0', "min_users must be greater than or equal to 1"),
    ('slot = "1h"', 'slot = "1h"\nspread_share = 1', "spread_share must be between 0.001 and 0.9"),
    ('slot = "1h"', 'slot = "1h"\nspread_share = 0', "spread_share must be between 0.001 and 0.9"),
    ('slot = "1h"', 'slot = "1h"\nalgorithm = "levy"\nspread_share = 0.3', "for a mean per slot with algorithm best"),
    ('slot = "1h"', 'slot = "1h"\nprior = "few-users"\ndelta = 1e-9\nspread_share = 0.3', "both find where values lie"),
    ('"mean"', '"distribution"\nspread_share = 0.3', "spread_share is for a mean per slot with algorithm"),
    ('"mean"', '"variance"\nalgorithm = "levy"', "levy is not for a variance per slot; use one of: best, baseline"),
    ('"mean"', '"distribution"\nquantiles = [0.5, 1]', "quantiles must be between 0 and 1"),
    ('"mean"', '"distribution"\nbins = 1', "bins must be greater than or equal to 2"),
    ('"mean"', '"distribution"\ngrid = 9', "bins are more than the grid has steps"),
    ("h3 = 8", "h3 = 16", "h3 must be less than or equal to 15"),
    ("h3 = 8", "h3 = -1", "h3 must be greater than or equal to 0"),
    ("h3 = 8", "h33 = 8", "unknown key 'h33'; did you mean 'h3'"),
    ('lat = "lat", ', "", "lat is missing; add it"),
    ('lon = "lon"', 'lon = "speed"', "field 'speed' is a value and 'speed' is pattern"),
    ('value = "speed"', 'value = ["speed", "load"]', "range must be a list of 2"),
    ('value = "speed"\n', "", "value is missing; add it"),
    ('value = "speed"', 'value = ["speed", "w"]\nalgorithm = "few-users"\ndelta = 1e-6', "range must be a list of 2"),
    (IN_CELLS, f"{ALONE}\nmax_groups = 2", "max_groups needs cells: add cell or group, or remove it"),
    (IN_CELLS, f'{ALONE}\nacross_cells = "split"', "across_cells needs cells"),
]  # fmt: skip


@in_a_loop
@pytest.mark.parametrize(("old", "new", "message"), REFUSED, ids=[f"{old} -> {new}" for old, new, _ in REFUSED])
def test_what_is_impossible_is_refused_with_a_remedy(tmp_path, old, new, message):
    load(written(tmp_path, SLOTS))
    assert old in SLOTS
    with pytest.raises(ConfigError, match=message):
        load(written(tmp_path, SLOTS.replace(old, new, 1)))


def test_a_slot_is_the_unit_unless_a_longer_one_is_said(tmp_path):
    config = load(written(tmp_path, SLOTS))
    metric = config.metrics[0]
    limits = expect(metric.hides.limits, PerCell)
    assert (metric.unit.name, metric.unit.period, limits.slots, limits.cells) == ("user-slot", HOUR, 1, 1)
    assert (metric.length, metric.by.name, config.unit) == (Even(HOUR), "best", "user-1h")
    assert Slotted.of(metric).clamps
    # An hour under another name is the same unit.
    same = load(written(tmp_path, SLOTS.replace('"1h"', '"1h"\nunit = "user-hour"\nmax_slots = 1'))).metrics[0]
    assert same.unit == metric.unit
    longer = load(written(tmp_path, SLOTS.replace('"1h"', '"1h"\nunit = "user"\nmax_slots = 9\nmax_groups = 3')))
    limits = expect(longer.metrics[0].hides.limits, PerCell)
    assert (limits.slots, limits.cells, longer.unit) == (9, 3, "user")


def test_defaults_of_a_distribution(tmp_path):
    plain = load(written(tmp_path, SLOTS.replace('"mean"', '"distribution"'))).metric[0]
    assert Slotted.of(plain.parts).bins == 64
    assert Slotted.of(plain.parts).quantiles[2] == Fraction(1, 2)
    said = SLOTS.replace('"mean"', '"distribution"\nbins = 8\nquantiles = ["1/3"]')
    assert Slotted.of(load(written(tmp_path, said)).metric[0].parts).quantiles == (Fraction(1, 3),)


def test_the_ledger_may_protect_a_person_and_slot(tmp_path):
    text = SLOTS.replace("epsilon = 4.0", 'epsilon = 4.0\nunit = "user-slot"')
    config = load(written(tmp_path, text))
    assert (config.unit, sum(config.charge_of(config.metric[0].parts))) == ("user-1h", 1)
    other = SLOTS[SLOTS.index("[[metric]]") :].replace('"speed"', '"slow"', 1).replace('"1h"', '"2h"')
    with pytest.raises(ConfigError, match="unit user-slot needs metrics per slot, all of one length"):
        load(written(tmp_path, text + other))
    # Without that word slots of two lengths make a ledger per person, and nothing bounds a person's slots.
    with pytest.raises(
        ConfigError, match='"speed" a person and hour, "slow" a person and 2h; say by which .* "user-2h"'
    ):
        load(written(tmp_path, SLOTS + other))


def test_a_place_is_a_cell_or_a_group_or_one_for_all(tmp_path):
    assert load(written(tmp_path, SLOTS)).metrics[0].pattern == {
        "user": "bus", "time": "at", "latitude": "lat", "longitude": "lon",
    }  # fmt: skip
    group = load(written(tmp_path, SLOTS.replace(CELL, 'group = "line"\nmax_groups = 2'))).metric[0]
    assert (group.group, group.cell) == ("line", None)
    assert load(written(tmp_path, SLOTS.replace(IN_CELLS, ALONE))).metric[0].cell is None


def test_few_users_as_an_algorithm_and_as_a_prior(tmp_path):
    for said in ('algorithm = "few-users"', 'prior = "few-users"\nsigma = 2'):
        metric = load(written(tmp_path, SLOTS.replace('slot = "1h"', f'slot = "1h"\ndelta = 1e-9\n{said}'))).metric[0]
        assert metric.delta == Fraction(1, 10**9)


def test_few_users_may_have_several_values(tmp_path):
    several = SLOTS.replace('value = "speed"', 'value = ["speed", "load"]').replace("[0, 65]", "[[0, 65], [0, 9]]")
    assert several != SLOTS
    few = several.replace('slot = "1h"', 'slot = "1h"\ndelta = 1e-9\nalgorithm = "few-users"\nsigma = [3, "1/2"]')
    metric = load(written(tmp_path, few)).metric[0]
    (speed, three), (load_, half) = Slotted.of(metric.parts).axes
    assert (speed.high, load_.high) == (Fraction(65), Fraction(9))
    assert (three, half) == (Fraction(3), Fraction(1, 2))
    # up to 32
    names, ranges = str([f"x{n}" for n in range(32)]), str([[0, 1]] * 32)
    many = (
        few.replace('["speed", "load"]', names).replace("[[0, 65], [0, 9]]", ranges).replace('sigma = [3, "1/2"]', "")
    )
    assert len(Slotted.of(load(written(tmp_path, many)).metric[0].parts).axes) == 32
    # the others up to 8
    levy = several.replace('slot = "1h"', 'slot = "1h"\nalgorithm = "levy"')
    assert [grid.high for grid in Slotted.of(load(written(tmp_path, levy)).metric[0].parts).grids] == [65, 9]
    nine = levy.replace('["speed", "load"]', str([f"x{n}" for n in range(9)]))
    with pytest.raises(
        ConfigError, match="9 coordinates, and a mean per slot 8 at most, or 32 with few-users; use several"
    ):
        load(written(tmp_path, nine.replace("[[0, 65], [0, 9]]", str([[0, 1]] * 9))))
    # what there is of one value alone
    for said, message in (
        ('delta = 1e-9\nprior = "few-users"', 'several values have no prior = "few-users"; use algorithm'),
        ('statistic = "distribution"', "several values are for .* not for a distribution per slot; use a metric"),
        ('statistic = "variance"', "several values are for .* not for a variance per slot; use a metric for"),
    ):
        wrong = several.replace('statistic = "mean"\n', "") if "statistic" in said else several
        with pytest.raises(ConfigError, match=message):
            load(written(tmp_path, wrong.replace('slot = "1h"', f'slot = "1h"\n{said}')))
    with pytest.raises(ValueError, match="several coordinates are not for with-prior of a mean per slot"):
        replace(Slotted.of(metric.parts), algorithm="best", prior=True)
    with pytest.raises(ValueError, match="several coordinates have grids of as many steps"):
        replace(
            Slotted.of(metric.parts),
            axes=((Grid(Fraction(0), Fraction(1), 4), None), (Grid(Fraction(0), Fraction(1), 5), None)),
        )


def test_slots_of_one_person_lose_one_after_the_other_and_sums_together(tmp_path):
    """A slot's releases see no other slot: losses add up. Those of a sum see several periods, as a group."""
    ledger = 'epsilon = 400\ndelta = 0.5\nunit = "user-day"'
    few = SLOTS.replace("epsilon = 4.0", ledger).replace(
        'slot = "1h"', 'slot = "1h"\ndelta = 1e-5\nprior = "few-users"'
    )
    config = load(written(tmp_path, few))
    assert config.charge_of(config.metric[0].parts) == (Fraction(24), Fraction(24, 10**5))
    window = 'decay = { kind = "window", length = "1d" }'
    summed = (
        few.replace('"mean"', '"sum"')
        .replace('slot = "1h"', 'every = "1h"\nunit = "user-12h"')
        .replace(IN_CELLS, f"{ALONE}\n{window}")
    )
    config = load(written(tmp_path, summed.replace('prior = "few-users"\n', "")))
    epsilon, delta = config.charge_of(config.metric[0].parts)
    assert epsilon == 2
    assert delta > Fraction(3, 10**5)
    too_much = few.replace("delta = 1e-5", "delta = 0.05")
    with pytest.raises(ConfigError, match="delta would be 1 or more; set .privacy. unit = .user-1h."):
        load(written(tmp_path, too_much))
