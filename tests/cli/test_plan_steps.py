"""`shoal plan` of sums, counts and decayed means: what it foretells is what is then released."""

import math
from datetime import datetime
from pathlib import Path

import numpy as np
import orjson
import pytest

from shoal.mechanisms.kinds import statistic_of
from shoal.mechanisms.linear.statistic import LinearStatistic
from shoal.mechanisms.statistic import Contribution
from shoal.models.config.file import load
from shoal.models.errors import ConfigError
from tests.cli.plan_cases import BEGIN, of, planned, shoal
from tests.cli.plan_cases import METRIC as MEAN
from tests.cli.plan_steps_cases import (
    ALL,
    ALPHA,
    COUNTS,
    FORMULA,
    FORWARD,
    HALF,
    HOURS,
    MEANS,
    PATENT,
    PER_HOUR,
    POLYNOMIAL,
    STATED,
    SUM,
    TABLE,
    USERS,
    WINDOW,
    run,
    said,
)

OF_THE_PATENT = [WINDOW, HALF, ALPHA, POLYNOMIAL, ALL, TABLE, FORMULA]
PLANNED = [("", decay) for decay in ("", FORWARD, *OF_THE_PATENT)] + [(PATENT, decay) for decay in OF_THE_PATENT]
ALIKE = [("", WINDOW), ("", FORWARD), (PATENT, HALF)]  # means and counts have the noise of their sums
SLOW = (PATENT, POLYNOMIAL)  # takes as long as six others
SHOWN = [("sum", *one) for one in PLANNED if one != SLOW]
SHOWN += [(statistic, *one) for statistic in ("mean", "count") for one in ALIKE]
MORE = [("sum", *SLOW)] + [(statistic, *one) for statistic in ("mean", "count") for one in PLANNED if one not in ALIKE]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statistic", "algorithm", "decay"), SHOWN + [pytest.param(*one, marks=pytest.mark.long) for one in MORE]
)
def test_the_noise_foretold_is_that_of_every_release(
    tmp_path: Path, statistic: str, algorithm: str, decay: str
) -> None:
    # given a workload that is stated, and a file that is like it
    changes = COUNTS if statistic == "count" else (('"sum"', f'"{statistic}"'),)
    config = said(tmp_path, (decay or 'decay = { kind = "none" }\n') + algorithm, *changes)
    (plan,) = planned(config, *STATED)
    found = of(plan, "patent" if algorithm else "sharp")
    # when its releases are made
    releases = run(config)
    # then each has that noise, at that time, over so many samples, by that mechanism
    foretold = {look["seconds"]: look for look in found["over_time"]}
    assert len(foretold) == len(releases) == HOURS
    for release in releases:
        look = foretold[datetime.fromisoformat(release["at"]).timestamp() - BEGIN / 1e6]
        assert look["samples"] == pytest.approx(release["samples"], rel=1e-5)
        assert look["noise_sd"] == (release["noise_sd"] if statistic == "sum" else pytest.approx(release["noise_sd"]))
        if statistic == "sum":
            assert 2 * look["half_interval"] == pytest.approx(release["high"] - release["low"])
        assert found["mechanism"] == release["mechanism"]
        assert look["left_out"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "changes"),
    [
        (WINDOW + PATENT, ()),
        (WINDOW.replace("8h", "24h") + 'delta = "1e-6"\n', ()),
        (HALF, (MEANS,)),
        pytest.param("", (), marks=pytest.mark.long),
        pytest.param(WINDOW, (), marks=pytest.mark.long),
        pytest.param(POLYNOMIAL, (), marks=pytest.mark.long),
        pytest.param(FORWARD, (), marks=pytest.mark.long),
        pytest.param(TABLE, (), marks=pytest.mark.long),
        pytest.param(WINDOW.replace("8h", "24h"), (), marks=pytest.mark.long),
        pytest.param(ALL + PATENT, (), marks=pytest.mark.long),
        pytest.param(FORMULA + PATENT, (), marks=pytest.mark.long),
    ],
)
def test_the_noise_measured_over_many_keys_is_that_foretold(
    tmp_path: Path, more: str, changes: tuple[tuple[str, str], ...]
) -> None:
    config = said(tmp_path, more + ("clamp = false\n" if changes else ""), *changes)
    (plan,) = planned(config, *STATED)
    foretold = of(plan, "patent" if PATENT in more else "sharp")["over_time"][-2]
    mechanism = statistic_of(load(config).metric[0].parts)
    assert isinstance(mechanism, LinearStatistic)
    # Releases of nothing but noise: all samples are 0, the low end of the range.
    errors: list[float] = []
    for key in range(500):
        releaser = mechanism.releaser(bytes([key % 256, key // 256] * 16), b"")
        for _ in range(HOURS - 1):  # more draws than the patent's one at a power of two
            releaser.add(Contribution(0, "", 0, 0, PER_HOUR, 0))
            releaser.close()
        estimate = releaser.estimate()
        assert estimate is not None
        assert estimate.value is not None
        errors.append(estimate.value)
    assert math.sqrt(np.mean(np.square(errors))) == pytest.approx(foretold["noise_sd"], rel=0.1)


@pytest.mark.parametrize("algorithm", ["", PATENT])
@pytest.mark.parametrize("decay", [WINDOW, HALF])
def test_the_noise_of_a_variance_is_foretold_for_a_mean_half_way_to_an_end(
    tmp_path: Path, decay: str, algorithm: str
) -> None:
    # given values around the middle of the range, where both sums have half of the noise's variance, not all
    config = said(tmp_path, decay + algorithm, ('"sum"', '"variance"'), ("epsilon = 1\n", "epsilon = 1e4\n"))
    (plan,) = planned(config, *STATED)
    foretold = of(plan, "patent" if algorithm else "sharp")["over_time"][-1]
    last = run(config)[-1]
    assert foretold["samples"] == pytest.approx(last["samples"], rel=1e-5)
    assert foretold["noise_sd"] == pytest.approx(last["noise_sd"]["variance"] * math.sqrt(2), rel=0.05)
    # and what the plan says is in square units
    text = shoal(config, *STATED).stdout
    assert "variance of amount in 0 .. 10" in text
    assert "Noise is in units of amount squared, for a mean half way from the middle of the range" in text


def test_what_a_lifetime_cap_leaves_out_of_a_variance_is_part_of_its_range(tmp_path: Path) -> None:
    config = said(tmp_path, WINDOW, ('"sum"', '"variance"'))
    (plan,) = planned(config, "--users", USERS, "--over", f"{HOURS}h", "--samples", 6, "--spread", 0.5)
    last = of(plan, "sharp")["over_time"][-4]
    assert last["bias"] == pytest.approx(last["left_out"] ** 2 * (10 * 0.5) ** 2 / 4 / 30)
    assert plan["recommended"]["algorithm"] == "sharp"


def test_what_a_lifetime_cap_leaves_out_is_told_with_the_bias_and_what_to_do(tmp_path: Path) -> None:
    # given users with 8 samples in 32 hours, of which the first 4 count: none of the last 16 hours
    config = said(tmp_path, WINDOW)
    (plan,) = planned(config, *STATED, "--samples", 8)
    looks = {look["seconds"] / 3600: look for look in of(plan, "sharp")["over_time"]}
    assert [looks[hour]["left_out"] for hour in (16, 20, 24, 32)] == pytest.approx([0, 0.5, 1, 1])
    assert looks[20]["bias"] == pytest.approx(-40 * 5), "a value is 5 on average"
    assert of(plan, "sharp")["long_run"]["left_out"] == pytest.approx(0.5), "if users come and go"
    # then 8 of them are advised, and a unit that starts anew
    advised = plan["recommended"]
    assert (advised["algorithm"], advised["max_contributions"], advised["outcome"]["bias"]) == ("sharp", 8, 0)
    text = shoal(config, *STATED, "--samples", 8).stdout
    assert "100 % of the samples in the last release are left out, 400 of the sum" in text
    assert "unit user-week renews it, but guarantees less" in text
    # and with a cap of each period, a part of each is left out; of events, nothing
    (daily,) = planned(said(tmp_path, 'unit = "user-8h"\n' + WINDOW, ("= 4", "= 1")), *STATED, "--samples", 8)
    assert daily["workload"]["samples_per_unit"] == 2
    assert {round(look["left_out"], 9) for look in of(daily, "sharp")["over_time"]} == {0.5}
    (free,) = planned(said(tmp_path, 'unit = "event"\n' + WINDOW, ("max_contributions = 4\n", "")), *STATED)
    assert (free["by_max_contributions"], free["recommended"]["max_contributions"]) == ([], None)
    assert {look["left_out"] for look in of(free, "sharp")["over_time"]} == {0}


def test_the_epsilon_that_halves_the_error_does(tmp_path: Path) -> None:
    (plan,) = planned(said(tmp_path, HALF, MEANS), *STATED)
    half = plan["half_the_error"]["epsilon"]
    assert half["epsilon"] == pytest.approx(2, rel=0.1)
    changes = (MEANS, ("epsilon = 1", f"epsilon = {half['epsilon']:.9f}"), ("= 4", f"= {half['max_contributions']}"))
    (better,) = planned(said(tmp_path, HALF, *changes), *STATED)
    assert of(better, "sharp")["over_time"][-1]["error"] <= 0.511 * plan["recommended"]["outcome"]["error"]
    # of what is left out in any case, no epsilon gives back half
    config = said(tmp_path, "", ("epsilon = 1", "epsilon = 1000"))
    options = ("--users", 1000, "--samples", 30, "--pattern", "skewed")
    assert planned(config, *options)[0]["half_the_error"]["epsilon"] is None
    assert "what is left out stays left out" in shoal(config, *options).stdout


def test_other_lengths_and_windows_told_afterwards(tmp_path: Path) -> None:
    (window,) = planned(said(tmp_path, WINDOW), *STATED)
    assert [one["length"] for one in window["by_length"]] == ["2h", "4h", "8h", "16h", "32h"]
    (other,) = planned(said(tmp_path, WINDOW.replace("8h", "2h")), *STATED)
    assert other["by_length"][1]["noise_sd"] == window["by_length"][0]["noise_sd"]
    assert [one["length"] for one in other["by_length"]] == ["1h", "2h", "4h", "8h"], "no step is cut"
    assert "configured" in shoal(said(tmp_path, WINDOW.replace("8h", "1h")), *STATED).stdout.partition("windows")[2]
    (half,) = planned(said(tmp_path, HALF), *STATED)
    assert [one["length"] for one in half["by_length"]] == ["90m", "3h", "6h", "12h", "1d"]
    (alpha,) = planned(said(tmp_path, ALPHA), *STATED)
    assert [one["length"] for one in alpha["by_length"]] == [
        f"alpha {0.9**power:.4g}" for power in (4, 2, 1, 1 / 2, 1 / 4)
    ]
    (told,) = planned(said(tmp_path, ALL), *STATED)
    assert [one["steps"] for one in told["by_window"]] == [1, 2, 4, 8, 16, 32]
    assert set(told["by_window"][0]["noise_sd"]) == {"sharp", "patent", "per-step"}
    assert told["recommended"]["life"] == "32h"
    assert "a metric of its own" in shoal(said(tmp_path, ALL), *STATED).stdout


def test_a_patent_that_refuses_is_told_and_a_decay_that_no_one_can_do_is_an_error(tmp_path: Path) -> None:
    config = said(tmp_path, 'decay = { kind = "exponential", alpha = 0.9999999999999 }\n')
    assert of(planned(config, *STATED)[0], "patent")["refused"]
    assert "patent is refused: " in shoal(config, *STATED).stdout
    refused = shoal(said(tmp_path, POLYNOMIAL.replace("1.5", "17")), *STATED)
    assert isinstance(refused.exception, ConfigError)


def others() -> str:
    """A count, a mean without decay, and metrics of other kinds, beside the sum."""
    count = SUM.replace("spend", "orders").replace('"sum"', '"count"').replace("range = [0, 10]\n", "")
    tail = SUM.replace("spend", "tail").replace('"sum"', '"mean"').replace("[0, 10]", "[-20, 10]") + ALPHA
    event = SUM.replace("spend", "event").replace("max_contributions = 4", 'unit = "event"')
    told = SUM.replace("spend", "told") + ALL + 'unit = "user-day"\ngroup = "country"\n'
    return count + MEAN + tail + event + WINDOW + told + event.replace('"event"\n', '"plain"\n', 1)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [60, 80, 130])
def test_the_tables_fit_the_terminal(tmp_path: Path, columns: int) -> None:
    config = said(tmp_path, WINDOW + 'delta = "1e-6"\n', others=others())
    result = shoal(config, "--users", 20_000, "--samples", 2.5, "--pattern", "skewed", columns=columns)
    assert (result.exit_code, result.stderr) == (0, "")
    assert max(map(len, result.stdout.splitlines())) <= columns
    assert "…" not in result.stdout
    for words in ("recommended: max_contributions", "recommended: sharp (", "by hand*", "A count is exact", "grows"):
        assert words in result.stdout


@pytest.mark.slow
def test_metrics_of_all_kinds_are_planned_together(tmp_path: Path) -> None:
    config = said(tmp_path, WINDOW, others=others())
    result = shoal(config, *STATED, "--json")
    fields = orjson.loads(result.stdout)
    assert fields["private"] is True
    names = ["spend", "orders", "amount", "tail", "event", "told", "plain"]
    assert [one["metric"] for one in fields["metrics"]] == names
    assert [one.get("statistic") for one in fields["metrics"]][:4] == ["sum", "count", "mean", "mean"]
    assert fields["metrics"][1]["recommended"]["outcome"]["error"] == 0
    one_step = shoal(config, "--users", 40, "--over", "1h", "--metric", "spend")
    assert one_step.exit_code == 0


def test_without_a_time_it_is_long_enough_for_the_decay(tmp_path: Path) -> None:
    days = {'"8h"': 365, '"100d"': 400}
    for span, over in days.items():
        (plan,) = planned(said(tmp_path, WINDOW.replace('"8h"', span)), "--users", 40)
        assert plan["workload"]["over"] == over * 86400
    (plan,) = planned(said(tmp_path, 'life = "5d"\n' + ALL), "--users", 40)
    assert (plan["workload"]["over"], plan["workload"]["samples_per_user"]) == (5 * 86400, 4)


@pytest.mark.parametrize(
    ("more", "changes", "limit"),
    [
        # 40 users, one after the other: 8 releases need D = 2, the largest integer below ln(16)
        ("", (), "8 releases within ± 40 "),  # 4 samples of 10, times 2, half of it
        (WINDOW, (), "8 releases within ± 40 "),
        (ALPHA, (), "8 releases within ± 38 "),
        (WINDOW, (("max_contributions = 4", "max_contributions = 1"),), "8 releases within ± 10 "),
        (TABLE, (), "8 releases within ± 35 "),
        (FORMULA + PATENT, (), "8 releases within ± 21.2 "),
        (FORWARD, (), "8 releases within ± 25 "),  # of two steps 1 and 1 / 4 at the second, more later
        # at most 2 units are in a step, and 64 samples in a window
        (WINDOW, (MEANS,), "8 releases within ± 0.625 "),
        ("delta = 1e-6\n" + WINDOW, (), None),
        (WINDOW, (('"sum"', '"variance"'),), None),
        ("", COUNTS, None),
        ("", (("epsilon = 1", "epsilon = 9"),), None),
    ],
)
def test_what_no_method_can_do_is_told(
    tmp_path: Path, more: str, changes: tuple[tuple[str, str], ...], limit: str | None
) -> None:
    config = said(tmp_path, more, *changes)
    told = [line for line in shoal(config, *STATED).stdout.splitlines() if "no method" in line]
    bound = planned(config, *STATED)[0]["lower_bound"]
    assert (bound and f"{bound['releases']} releases within ± {bound['error']:.3g} ") == limit
    assert len(told) == (limit is not None)
    assert limit is None or f" keeps {limit}with probability 2/3" in told[0]


def test_wrong_usage(tmp_path: Path) -> None:
    config = said(tmp_path, WINDOW)
    unknown = shoal(config)
    assert unknown.exit_code == 2
    assert "how many users" in unknown.stderr
