"""What `shoal check --people` says several people lose."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from shoal.mechanisms.privacy.accounting import Concentrated, Loss
from shoal.mechanisms.privacy.zcdp import largest_rho
from tests.cli.test_units import CAP, COUNT, HEAD, SUM, WINDOW, folder, section, shoal

__all__ = ["folder"]
FEW = (
    'statistic = "mean"\nslot = "1h"\nepsilon = 1\ndelta = 1e-6\nalgorithm = "few-users"\nsigma = 1\n'
    "max_contributions = 4\n"
)

GAUSSIAN = 'delta = 1e-3\ndecay = { kind = "window", length = "60d" }\n'


def asked(*metrics: str, people: int, unit: str | None = None) -> tuple[str, dict[str, Any]]:
    """The text and the JSON of a check that is asked about so many people."""
    parts = [section(number, lines) for number, lines in enumerate(metrics)]
    Path("shoal.toml").write_text(HEAD + (f'unit = "{unit}"\n' if unit else "") + "".join(parts))
    results = [shoal("check", "shoal.toml", "--people", people, *more) for more in ((), ("--json",))]
    for result in results:
        if result.exception is not None:
            raise result.exception
    return results[0].stdout, json.loads(results[1].stdout)


def bound(people: dict[str, Any]) -> tuple[float, float, str]:
    return people["epsilon"], people["delta"], people["by"]


def test_a_household_of_four_loses_four_times_a_pure_epsilon(folder):
    text, fields = asked(SUM + CAP, SUM + CAP, COUNT, people=4)
    assert [bound(metric["people"]) for metric in fields["metrics"]] == [(4, 0, "pure"), (4, 0, "pure"), (0, 0, "pure")]
    assert fields["people"] == {
        "count": 4, "unit": "user", "epsilon": 8.0, "delta": 0.0, "by": "pure", "also": [],
        "guarantee": "any 4 people lose at most epsilon = 8",
    }  # fmt: skip
    assert text.count("\n      any 4 people lose at most epsilon = 4\n") == 2
    assert "\n      any 4 people lose at most epsilon = 8\n" in text


def test_approximate_metrics_have_the_delta_of_a_group(folder):
    text, fields = asked(FEW, people=4, unit="user-slot")
    group = Loss(Fraction(1), Fraction(1, 10**6)).of_group(4)
    epsilon, delta, by = bound(fields["people"])
    assert (epsilon, by, fields["people"]["unit"]) == (4, "approximate", "user-1h")
    assert group.delta <= Fraction(delta) <= group.delta * (1 + Fraction(1, 10**15))
    assert "any 4 people in one hour each lose at most epsilon = 4, delta = 0.0000312\n" in text
    assert bound(fields["metrics"][0]["people"]) == bound(fields["people"])


def test_gaussian_noise_is_counted_by_its_rho_and_says_what_the_delta_of_one_person_gives(folder):
    text, fields = asked(SUM + CAP + GAUSSIAN, people=4)
    rho = Concentrated(16 * largest_rho(Fraction(1), Fraction(1, 1000)))
    epsilon, delta, by = bound(fields["people"])
    (also,) = fields["people"]["also"]
    assert by == also["by"] == "zcdp"
    assert epsilon < 4 < also["epsilon"]
    assert also["delta"] == 0.001
    for told in (fields["people"], also):
        exact = rho.loss(Fraction(str(told["delta"]))).epsilon
        assert exact <= Fraction(told["epsilon"]) * (1 + Fraction(1, 10**12)) <= exact * (1 + Fraction(1, 10**9))
    assert (
        "any 4 people lose at most epsilon = 3.55481, delta = 0.0312 (zCDP) or epsilon = 5.25007, "
        "delta = 0.001 (zCDP)\n"
    ) in text


def test_a_delta_that_a_short_window_does_not_use_is_left_out(folder):
    _, fields = asked(SUM + CAP + WINDOW, people=4)
    assert bound(fields["people"]) == (4, 0, "pure")


def test_periods_and_events_of_several_people_are_counted_by_the_ledgers_unit(folder):
    text, fields = asked(SUM + CAP + 'unit = "user-5h"', SUM + CAP, people=2, unit="user-day")
    assert [metric["people"]["epsilon"] for metric in fields["metrics"]] == [12, 2]
    assert fields["people"]["epsilon"] == 14
    assert "any 2 people in one day each lose at most epsilon = 14" in text
    text, fields = asked(SUM + 'unit = "event"', SUM + CAP, people=3, unit="event")
    assert [metric["people"]["epsilon"] for metric in fields["metrics"]] == [3, 3]
    assert "any 3 events lose at most epsilon = 6" in text


@pytest.mark.parametrize("unit", ["user", "user-day"])
def test_events_are_converted_to_people_by_how_many_a_person_has(folder, unit):
    events = SUM.replace("1\n", "0.1\n") + 'unit = "event"\nmax_events_per_user = 5\n'
    text, fields = asked(events, people=4, unit=unit)
    assert [metric["charge"] for metric in fields["metrics"]] == [0.5]
    assert "at most 5 events of a user can count" in text
    assert "m0 protects an event: one person" in text
    assert "has a part in up to 5 of them, and all of these are counted here" in text
    assert bound(fields["people"]) == (2, 0, "pure")


def test_events_with_gaussian_noise_are_converted_by_their_rho(folder):
    limited = 'unit = "event"\nmax_events_per_user = 5\n'
    _, fields = asked(SUM.replace("1\n", "0.1\n") + GAUSSIAN.replace("1e-3", "1e-4") + limited, people=1, unit="user")
    epsilon, delta, by = bound(fields["people"])
    (metric,) = fields["metrics"]
    assert by == "zcdp"
    assert epsilon < metric["charge"] == 0.5
    assert delta == pytest.approx(metric["charge_delta"])
    (own,) = fields["people"]["also"]
    assert own["delta"] == 1e-4
    rho = Concentrated(25 * largest_rho(Fraction(1, 10), Fraction(1, 10**4)))
    assert own["epsilon"] == pytest.approx(float(rho.loss(Fraction(1, 10**4)).epsilon))


def test_numbers_are_rounded_up(folder):
    _, fields = asked(SUM.replace("1\n", "0.1\n") + CAP, people=3)
    assert fields["people"]["epsilon"] == 0.30000000000000004
    assert Fraction(3, 10) <= Fraction(fields["people"]["epsilon"])
    assert fields["people"]["epsilon"] == math.nextafter(0.3, 1)


def test_a_delta_that_promises_nothing_is_said_to(folder):
    text, fields = asked(FEW, people=40, unit="user-slot")
    assert "epsilon = 40, with a delta that promises nothing" in text
    assert fields["people"]["delta"] == 1


def test_without_the_question_nothing_is_added(folder):
    _, fields = asked(SUM + CAP, people=1)
    said = json.loads(shoal("check", "shoal.toml", "--json").stdout)
    del fields["people"], fields["metrics"][0]["people"]
    assert said == fields


@pytest.mark.parametrize("people", ["0", "-1", "1.5", "four", str(2**20 + 1)])
def test_so_many_people_are_refused(folder, people):
    asked(SUM + CAP, people=1)
    result: Result = shoal("check", "shoal.toml", "--people", people)
    assert result.exit_code == 2
    assert "Invalid value for '--people'" in result.output
