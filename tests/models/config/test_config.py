"""What a configuration may say, and the one line that answers what it may not."""

from fractions import Fraction
from pathlib import Path

import pytest

from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.life import expected_releases
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.parts.lengths import Even
from shoal.models.config.file import load
from shoal.models.errors import ConfigError
from tests.support.cover import in_a_loop

GOOD = """
[kafka]
brokers = "localhost:9092"
app = "shoal"
[audit]
url = "sqlite:///shoal.db"
[privacy]
key_file = "shoal.key"
epsilon = 4.0
[[metric]]
name = "basket"
topic = "purchases"
user = "customer.id"
value = "amount"
time = "at"
statistic = "mean"
range = [0, 200]
epsilon = 0.1
max_contributions = 64
users = 25000
algorithm = "full"
every = "1h"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "shoal.toml"
    path.write_text(text)
    return path


def second_metric(**changes: str) -> str:
    fields = {
        "name": '"other"', "topic": '"purchases"', "user": '"customer.id"', "value": '"price"', "time": '"at"',
        "statistic": '"mean"', "range": "[-1, 1]", "epsilon": "1", "max_contributions": "1", "users": "10",
        "algorithm": '"naive"', "every": '"contribution"',
    } | changes  # fmt: skip
    return GOOD + "[[metric]]\n" + "\n".join(f"{key} = {value}" for key, value in fields.items() if value)


def test_numbers_are_decimals_durations_are_microseconds_and_paths_start_at_the_file(tmp_path):
    config = load(written(tmp_path, GOOD + 'lateness = "90s"\n'))
    metric = config.metric[0]
    assert metric.epsilon == Fraction(1, 10)
    assert (metric.every, metric.lateness) == (3_600_000_000, 90_000_000)
    assert metric.range == (Fraction(0), Fraction(200))
    assert config.audit.url == f"sqlite:///{tmp_path}/shoal.db"
    assert config.privacy.key_file == tmp_path / "shoal.key"


def test_other_databases_and_absolute_paths_stay_as_they_are(tmp_path):
    text = GOOD.replace("sqlite:///shoal.db", "postgresql+psycopg://u@h/d").replace('"shoal.key"', '"/k/shoal.key"')
    text = text.replace('app = "shoal"', 'app = "shoal"\nssl_cafile = "ca.pem"')
    config = load(written(tmp_path, text))
    assert config.audit.url == "postgresql+psycopg://u@h/d"
    assert config.privacy.key_file == Path("/k/shoal.key")
    assert config.kafka.ssl_cafile == tmp_path / "ca.pem"


def test_sections_with_defaults_may_be_left_out_and_topics_keep_their_order(tmp_path):
    text = second_metric(topic='"clicks"')
    text = text.replace('[kafka]\nbrokers = "localhost:9092"\napp = "shoal"\n[audit]\nurl = "sqlite:///shoal.db"\n', "")
    config = load(written(tmp_path, text))
    assert config.topics == ("purchases", "clicks")
    assert [metric.name for metric in config.metrics_of("clicks")] == ["other"]
    assert config.kafka.partitions == 8
    assert config.web.port is None


def test_the_environment_goes_before_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_KAFKA_BROKERS", "kafka:1234")
    monkeypatch.setenv("SHOAL_PRIVACY_EPSILON", "2.5")
    config = load(written(tmp_path, GOOD))
    assert config.kafka.brokers == "kafka:1234"
    assert config.privacy.epsilon == Fraction(5, 2)


REFUSED = [
    ("epsilon = 0.1", "epsilom = 0.1", "metric \"basket\": unknown key 'epsilom'; did you mean 'epsilon'?"),
    ("epsilon = 0.1", "epsilon = 0", 'metric "basket": epsilon must be greater than 0'),
    ("epsilon = 0.1", "epsilon = -1", 'metric "basket": epsilon must be greater than 0'),
    ("epsilon = 0.1", "epsilon = nan", 'metric "basket": epsilon must be a finite number'),
    ("epsilon = 0.1", "epsilon = true", 'metric "basket": epsilon must be a number'),
    ("epsilon = 4.0", "epsilon = 0", "[privacy]: epsilon must be greater than 0"),
    ("[0, 200]", "[200, 0]", 'metric "basket": range is reversed or empty; write [low, high] with low < high'),
    ("[0, 200]", "[0, 1e301]", 'metric "basket": range is beyond what a JSON number can carry'),
    ('"full"', '"patent"', 'metric "basket": patent is not for means without a decay; use one of: sharp'),
    ('"full"', '"wishful"', 'metric "basket": prior is missing: wishful clips around it; add it, or use full'),
    ('"full"', '"single-tree"\nprior = 201', 'metric "basket": prior lies outside the range; choose a number'),
    ('"full"', '"multi-tree"\nprior = "mean"', 'metric "basket": prior'),
    ('"full"', '"full"\nprior = 3', 'metric "basket": prior is not for full; remove it, or use one of: wishful'),
    ('"full"', '"naive"\nprior = 3', 'metric "basket": prior is not for naive; remove it, or use one of: wishful'),
    ('"full"', '"naive"\nsigma = 3', 'metric "basket": sigma is for algorithms on blocks, and sharp; naive needs a'),
    ('"full"', '"sharp"\nsigma = 3\ndelta = 0.01', "sharp takes sigma without a delta; remove one of the two"),
    ('"full"', '"sharp"\nsigma = 0', 'metric "basket": sigma must be greater than 0'),
    ('"full"', '"full"\nsigma = 0', 'metric "basket": sigma must be greater than 0'),
    ('value = "amount"', 'value = []', 'metric "basket": value must be one name as text, or a list of 2 to 32 names'),
    ('value = "amount"', 'value = ["amount"]', 'metric "basket": value must be one name as text, or a list of 2 to 32'),
    ('value = "amount"', 'value = ["amount", 3]', 'metric "basket": value must be the name of a field, or a list'),
    ('value = "amount"', 'value = ""', 'metric "basket": value must be the name of a field, or a list of names'),
    ('value = "amount"', 'value = ["x", "y", "x"]', "metric \"basket\": value has 'x' and 'x', of which one"),
    ('value = "amount"', 'value = ["x", "x.y"]', "metric \"basket\": value has 'x' and 'x.y', of which one"),
    ('value = "amount"', 'value = ["x", "y"]', 'metric "basket": range must be a list of 2, one for each value'),
    ("[0, 200]", "[[0, 200]]", 'metric "basket": range must be one'),
    ("[0, 200]", "[0, 200, 3]", 'metric "basket": range must be [low, high], or a list with one such pair for each'),
    ("[0, 200]", "7", 'metric "basket": range must be [low, high], or a list with one such pair for each'),
    ("[0, 200]", '[0, "many"]', 'metric "basket": range'),
    ("users = 25000", "", 'metric "basket": users is missing: the trees of full are made for so many; add it'),
    ('"full"', '"full"\nhorizon = "9d"', 'metric "basket": horizon is now life, and its default is 365d'),
    ('"full"', '"full"\nlife = "9d"', 'metric "basket": life tunes sharp; full does not use it; remove it'),
    ('"full"\nevery = "1h"', '"sharp"\nlife = "9d"\nevery = "contribution"', "life needs a cadence"),
    ('"full"', '"full"\nsigma = [1, 2]', 'metric "basket": sigma must be one'),
    ('"full"', '"best"', 'metric "basket": best is not for means without a decay; use one of: sharp, naive'),
    ('"full"', '"bst"', "metric \"basket\": algorithm 'bst' does not exist; this version has: sharp, naive"),
    ('"mean"', '"slot-mean"', 'metric "basket": statistic slot-mean is now "mean", with a slot'),
    ('"mean"', '"slot-mean-variance"', 'metric "basket": statistic slot-mean-variance is now "variance", with a slot'),
    ('"mean"', '"slot-distribution"', 'metric "basket": statistic slot-distribution is now "distribution", with a'),
    ('"mean"', '"mean-variance"', 'metric "basket": statistic mean-variance is now "variance"'),
    ('"mean"', '"distribution"', "statistic distribution needs a slot, or relation add-remove; add one of the two"),
    ('"mean"', '"users"', "statistic users is for relation add-remove; say so, or choose another"),
    ('"full"', '"two-sided"', "algorithm two-sided is the only one of relation add-remove; remove it"),
    ('"mean"', '"slot-sum"', "metric \"basket\": statistic 'slot-sum' does not exist; this version has: mean, sum"),
    ('"mean"', '"sum"', 'metric "basket": full is not for a sum of every step; use one of: sharp, patent'),
    ('range = [0, 200]', '', 'metric "basket": range is missing; add it'),
    ('range = [0, 200]', 'range = [0, 200]\nlateness = "106751992d"', "lateness must be at most 106751991d"),
    ('range = [0, 200]', 'range = [0, 200]\nmax_ahead = "999999999d"', "max_ahead must be at most 106751991d"),
    ('value = "amount"', '', 'metric "basket": value is missing; add it'),
    ('max_contributions = 64', '', 'metric "basket": max_contributions is missing; add it'),
    ('max_contributions = 64', 'max_per_group = 64', "max_per_group limits each group, and there is no group; use max"),
    ('max_contributions = 64', 'group = "shop"', "max_per_group is missing; add it"),
    ('every = "1h"', 'every = "1h"\ngroup = "shop"', "max_contributions limits all groups together, and here"),
    ('every = "1h"', 'every = "contribution"\ngroup = "shop"', "here each has a limit of its own; use max_per_group"),
    ('every = "1h"', 'every = "1h"\nmax_groups = 2', "max_groups needs a group: add one, or remove it"),
    ('every = "1h"', 'every = "1h"\nmax_gap = 9', "max_gap is for sums, counts, variances and means with"),
    ('every = "1h"', 'step = "1h"', 'metric "basket": step is now every'),
    ('every = "1h"', 'every = "1h"\nmax_groups_per_user = 2', "max_groups_per_user is now max_groups"),
    ('every = "1h"', 'every = "1h"\nmax_cells = 2', "max_cells is now max_groups"),
    ('every = "1h"', 'every = "1h"\nselection = { keys = 2 }', "selection keys is now max_groups, a key of the"),
    ('"1h"', '"1y"', "metric \"basket\": every '1y' is not a duration"),
    ('"1h"', '"0s"', 'metric "basket": every must be longer than 0s'),
    ('"1h"', "3600", 'metric "basket": every must be a duration such as 30s, 5m, 1h or 7d, in quotes'),
    ('every = "1h"', "", 'metric "basket": every is missing; add it'),
    ('every = "1h"', 'every = "1h"\ndelta = 0.1', 'metric "basket": delta must be 0'),
    ('every = "1h"', 'every = "contribution"\nwithheld = true', 'metric "basket": withheld counts what came in a tick'),
    ('every = "1h"', 'every = "1h"\nwithheld = 3', 'metric "basket": withheld must be true or false'),
    ('every = "1h"', 'every = "1h"\nunit = "user-day"', "metric \"basket\": unit 'user-day' is not built for means"),
    ('every = "1h"', 'every = "1h"\nunit = "user-moon"', "metric \"basket\": unit 'user-moon' has no period; write"),
    ('every = "1h"', 'every = "1h"\nunit = "device"', "metric \"basket\": unit 'device' does not exist; write user"),
    ('every = "1h"', 'every = "1h"\nrelation = "users"', "metric \"basket\": relation 'users' does not exist"),
    ('every = "1h"', 'every = "1h"\nslot = "1h"', 'metric "basket": every is not for statistics per slot'),
    ('every = "1h"', 'every = "1h"\nprior = "few-users"', 'prior is not for full; remove it'),
    ('every = "1h"', 'every = "1h"\nunit = "user-slot"', 'metric "basket": unit user-slot is for statistics per slot'),
    ('"customer.id"', '"amount"', "field 'amount' is a value and 'amount' is pattern"),
    ('"customer.id"', '"amount.of"', "field 'amount' is a value and 'amount.of' is pattern"),
    ('"basket"', '"Basket!"', 'metric "Basket!": name'),
    ("[kafka]", "[kafka]\nidle_after = '0s'", "[kafka]: idle_after must be longer than 0s"),
    ("[kafka]", "[kafka]\nlatency = '49ms'", "[kafka]: latency must be at least 50ms and at most 1m"),
    ("[kafka]", "[kafka]\nlatency = '61s'", "[kafka]: latency must be at least 50ms and at most 1m"),
    ("[kafka]", "[kafka]\nlatency = '0.2s'", "latency '0.2s' is not a duration; write a whole number and ms, s,"),
    ("[kafka]", "[kafka]\nlatency = 200", "[kafka]: latency must be a duration such as 200ms or 1s, in quotes"),
    ("[kafka]", "[kafka]\ncompacted = ['sales']", "[kafka] compacted: no metric reads topic 'sales'; remove it, or"),
    ("[kafka]", "[kafka]\ncompacted = 'purchases'", "[kafka]: compacted must be a list of topics, as in"),
    ("[kafka]", "[kafk]", "the file: unknown key 'kafk'; did you mean 'kafka'?"),
    ("[audit]", "[audit]\nurll = 1", "[audit]: unknown key 'urll'; did you mean 'url'?"),
    ("[privacy]", "[[privacy]]", "the file"),
]  # fmt: skip


def test_a_compacted_topic_is_any_units_unless_one_of_them_would_delete_anothers_records(tmp_path):
    listed = GOOD.replace("[kafka]", "[kafka]\ncompacted = ['purchases']")
    assert load(written(tmp_path, GOOD)).kafka.compacted == ()
    assert load(written(tmp_path, listed)).kafka.compacted == ("purchases",)
    # given presence: of a person's days, the record of one deletes that of another
    count = listed.split("value =")[0] + (
        'statistic = "count"\nrelation = "add-remove"\nevery = "1d"\nstart = 2026-01-01\nlife = "30d"\nepsilon = 1\n'
        'time = "at"\nmax_contributions = 4\n'
    )
    assert load(written(tmp_path, count)).kafka.compacted == ("purchases",)
    with pytest.raises(ConfigError, match=r"the presence of one person and day, .* set unit = .user. there, or remove"):
        load(written(tmp_path, count + 'unit = "user-day"\n'))


SUMS = (
    GOOD.replace('"mean"', '"sum"')
    .replace("users = 25000\n", "")
    .replace('"full"', '"sharp"')
    .replace('every = "1h"', 'every = "1h"\ndecay = { kind = "window", length = "7d" }')
)
HIDDEN = 'relation = "add-remove"\nstart = 2026-01-01'
FOUND = f'{HIDDEN}\ngroup = "shop"\nlife = "9d"\ndelta = 1e-6'
REFUSED_OF_SUMS = [
    ('every = "1h"', "", "every is missing; add it"),
    ('every = "1h"', 'every = "0s"', "every must be longer than 0s"),
    ('"7d"', '"90m"', "decay length is not a multiple of every; choose one that is"),
    (', length = "7d"', "", "decay of kind window needs length"),
    ('length = "7d"', 'lenght = "7d"', "unknown key 'lenght'; did you mean 'length'?"),
    ('"window"', '"windw"', "kind must be 'none', 'window'"),
    ('"window"', '"none"', "decay length is not for a decay of kind none; remove it"),
    ('"window", length = "7d"', '"exponential"', "decay of kind exponential needs half_life or alpha"),
    ('"window", length = "7d"', '"exponential", alpha = 0.5, half_life = "1d"', "half_life or alpha, not both"),
    ('"window", length = "7d"', '"exponential", alpha = 1', "alpha must be less than 1"),
    ('"window", length = "7d"', '"exponential", alpha = 0', "alpha must be greater than 0"),
    ('"window", length = "7d"', '"exponential", half_life = "0s"', "half_life must be greater than 0"),
    ('"window", length = "7d"', '"polynomial", exponent = 0', "exponent must be greater than 0"),
    ('"sharp"', '"full"', "full is not for a sum of every step; use one of: sharp, patent"),
    ('"sharp"', '"patent"\ndelta = 0.1', "delta must be 0: patent is pure differential privacy"),
    ('"sharp"', '"sharp"\nsigma = 3', "sigma is for means without a decay; remove it"),
    ('"sharp"', '"sharp"\nprior = 3', "prior is for means without a decay; remove it"),
    ('"sharp"', '"sharp"\nwithheld = true', "withheld is for means without a decay; remove it"),
    ('"sharp"', '"sharp"\nclamp = true', "clamp is for means; a sum is never clamped; remove it"),
    ('"sharp"', '"patent"\nlife = "9d"', "life tunes sharp; patent does not use it"),
    ('max_contributions = 64', 'max_contributions = 64\nunit = "event"', "max_contributions is not for unit event"),
    ('max_contributions = 64', '', "max_contributions is missing; add it"),
    ('max_contributions = 64', 'max_per_group = 9\ngroup = "g"', "max_per_group limits each group, and here one"),
    ('every = "1h"', 'every = "contribution"', 'every = "contribution" is for means without a decay; use a duration'),
    ('every = "1h"', 'slot = "1h"', "statistic sum has no slots; remove slot, or choose one of: mean, variance"),
    ('"sum"', '"count"', "range does nothing for statistic count, which has no values; remove it"),
    ('"sum"\nrange = [0, 200]', '"count"\ngrid = 16', "grid does nothing for statistic count, which has no"),
    ('"sum"\nrange = [0, 200]', '"count"\nclamp = true', "clamp does nothing for statistic count, which has no"),
    ('"sharp"', f'"sharp"\n{HIDDEN}', "algorithm is for relation values: add-remove has one of its own; remove it"),
    ('algorithm = "sharp"', f'{FOUND}\nmax_groups = 65', "max_groups is at most 64 where keys are found; use fewer"),
    ('algorithm = "sharp"', f'{HIDDEN}\nmax_gap = 9', "max_gap is for sums, counts, variances and means with"),
    ('range = [0, 200]', '', "range is missing; add it"),
]  # fmt: skip


def test_a_patent_needs_a_decay_that_its_bound_holds_for(tmp_path):
    patent = SUMS.replace('"sharp"', '"patent"')
    for decay, message in (
        ('"none"', "the patent has no mechanism without a decay; use sharp"),
        ('"polynomial", exponent = 1', "the patent's bound needs an exponent above 1; use sharp, or a larger exponent"),
    ):
        with pytest.raises(ConfigError, match=message):
            load(written(tmp_path, patent.replace('"window", length = "7d"', decay)))
    assert load(written(tmp_path, patent)).metrics[0].length == Even(3_600_000_000)


def test_several_values_are_for_means_without_a_decay(tmp_path):
    text = SUMS.replace('"amount"', '["x", "y"]').replace("[0, 200]", "[[0, 1], [0, 1]]")
    with pytest.raises(ConfigError, match="several values are for means without a decay; use a metric for each"):
        load(written(tmp_path, text))


def test_a_count_costs_nothing_and_needs_no_value(tmp_path):
    text = SUMS.replace('"sum"', '"count"').replace('value = "amount"\n', "").replace("range = [0, 200]\n", "")
    for given in ("epsilon = 0.1\n", ""):
        metric = load(written(tmp_path, text.replace("epsilon = 0.1\n", given))).metrics[0]
        assert metric.budget.epsilon == 0
        assert not metric.names
        assert not metric.ranges


def test_a_count_ignores_an_epsilon_but_not_what_is_none(tmp_path):
    text = SUMS.replace('"sum"', '"count"').replace("range = [0, 200]\n", "")
    metric = load(written(tmp_path, text + "delta = 0.5\n")).metric[0]
    assert metric.epsilon == metric.delta == 0
    for given, message in (
        ("-1", "epsilon must be 0 or more"),
        ('"much"', "epsilon must"),
        ("nan", "epsilon must"),
    ):
        with pytest.raises(ConfigError, match=message):
            load(written(tmp_path, text.replace("epsilon = 0.1", f"epsilon = {given}")))
    with pytest.raises(ConfigError, match="delta must be less than 1"):
        load(written(tmp_path, text + "delta = 5\n"))


def test_units_that_no_ledger_suits_are_refused_for_what_they_would_lose(tmp_path):
    # given deltas that add up to 1, whichever of the two units the ledger counts by
    lossy = SUMS.replace("epsilon = 4.0", "epsilon = 4.0\ndelta = 0.9").replace(
        "epsilon = 0.1", "epsilon = 0.1\ndelta = 0.5"
    )
    one = lossy + 'unit = "user-5h"\n'
    other = lossy[lossy.index("[[metric]]") :].replace('"basket"', '"other"') + 'unit = "user-12h"\n'
    with pytest.raises(ConfigError, match='metric "basket": unit user-5h under a ledger per person: .* any number'):
        load(written(tmp_path, one + other))
    # and with smaller ones the longer unit is proposed, with what it charges
    with pytest.raises(ConfigError, match='unit = "user-12h" .which charges "basket" 4 times its epsilon.; a ledger'):
        load(written(tmp_path, (one + other).replace("delta = 0.5", "delta = 1e-6")))


def test_what_has_a_step_says_how_often_and_whom_it_protects(tmp_path):
    metric = load(written(tmp_path, SUMS + 'life = "30d"\n')).metrics[0]
    assert metric.length == Even(3_600_000_000)
    assert (expected_releases(metric), metric.samples, kind_of(metric)) == (720, 64, LinearStatistic)
    event = load(written(tmp_path, SUMS.replace("max_contributions = 64", 'unit = "event"')))
    assert (event.metrics[0].samples, event.metrics[0].unit.is_event, event.unit) == (1, True, "event")
    assert load(written(tmp_path, SUMS.replace("epsilon = 4.0", 'epsilon = 4.0\nunit = "user-day"'))).unit == "user-day"
    with pytest.raises(ConfigError, match="unit 'user-moon' has no period"):
        load(written(tmp_path, SUMS.replace("epsilon = 4.0", 'epsilon = 4.0\nunit = "user-moon"')))


@in_a_loop
@pytest.mark.parametrize(
    ("good", "old", "new", "message"),
    [(GOOD, *row) for row in REFUSED] + [(SUMS, *row) for row in REFUSED_OF_SUMS],
    ids=[new for _, new, _ in REFUSED + REFUSED_OF_SUMS],
)
def test_what_is_impossible_is_refused_in_one_line_that_says_what_to_do(tmp_path, good, old, new, message):
    load(written(tmp_path, good))
    assert old in good
    with pytest.raises(ConfigError) as caught:
        load(written(tmp_path, good.replace(old, new, 1)))
    text = str(caught.value)
    assert message in text
    assert "\n" not in text


def test_a_prior_and_a_sigma_are_exact(tmp_path):
    text = GOOD.replace('"full"', '"multi-tree"\nprior = 12.5\nsigma = "1/3"')
    metric = load(written(tmp_path, text)).metric[0]
    assert (metric.prior, metric.sigma) == (Fraction(25, 2), Fraction(1, 3))


def test_what_no_single_table_can_see(tmp_path):
    grouped = {"group": '"amount"', "max_contributions": "", "max_per_group": "1"}
    for changes, message in [
        ({"name": '"basket"'}, 'metric "basket" stands twice'),
        ({"user": '"buyer"'}, "users are buyer and customer.id"),
        ({"value": '"at"'}, "field 'at' is a value and 'at' is pattern"),
        (grouped, "field 'amount' is a value and 'amount' is pattern"),
    ]:
        with pytest.raises(ConfigError, match=message):
            load(written(tmp_path, second_metric(**changes)))
    assert len(load(written(tmp_path, second_metric())).metric) == 2


def test_an_unnamed_metric_is_called_by_its_place(tmp_path):
    with pytest.raises(ConfigError, match='metric "number 1": name is missing'):
        load(written(tmp_path, GOOD.replace('name = "basket"', "")))


def test_a_file_that_is_none(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "absent.toml")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load(written(tmp_path, "a = "))


@pytest.mark.parametrize("deep", ["a = " + "[" * 100_000 + "]" * 100_000, ".".join(["a"] * 2_000) + " = 1"])
def test_a_file_that_is_nested_deeply_is_refused_in_one_line(tmp_path, deep):
    with pytest.raises(ConfigError, match=r"shoal.toml: lists or tables are nested hundreds deep, .* remove them$"):
        load(written(tmp_path, deep))


def test_a_file_that_an_editor_saved_in_its_way(tmp_path):
    assert load(written(tmp_path, "\ufeff" + GOOD)).metric == load(written(tmp_path, GOOD)).metric
    (tmp_path / "latin.toml").write_bytes("# Köln\n".encode("latin-1"))
    with pytest.raises(ConfigError, match="it is not UTF-8 text; save it as UTF-8"):
        load(tmp_path / "latin.toml")


@in_a_loop
@pytest.mark.parametrize("number", ['"1e999999999"', "1e999999999", "1e-999999999", '"1E+0999999999"'])
def test_an_astronomic_number_is_refused_before_it_fills_the_memory(tmp_path, number):
    with pytest.raises(ConfigError, match="epsilon must be 0 or a number between 1e-999 and 1e999"):
        load(written(tmp_path, GOOD.replace("epsilon = 4.0", f"epsilon = {number}")))


@pytest.mark.parametrize("number", ["1" * 5000, "1e99999999999999999999"])
def test_a_number_that_toml_cannot_hold(tmp_path, number):
    with pytest.raises(ConfigError, match="a number has too many digits"):
        load(written(tmp_path, GOOD.replace("epsilon = 4.0", f"epsilon = {number}")))
