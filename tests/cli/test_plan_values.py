"""`shoal plan --values`: real values say what clipping costs, and that the plan is not private."""

import math
from pathlib import Path

import orjson
import pytest

from shoal.agents.plan.observed import observed
from shoal.mechanisms.continual_mean import MEANS
from shoal.mechanisms.forecast.observed_mean import ObservedMean
from shoal.mechanisms.forecast.plan import NOT_PRIVATE
from shoal.models.config.file import load
from shoal.models.errors import ConfigError, InputError
from tests.cli.plan_cases import (
    METRIC,
    events,
    of,
    planned,
    run,
    said,
    shoal,
)

TELLS = "withheld = true\n"
EXACT = ("samples", "noise_sd", "bias", "left_out")  # what no noise moves


def test_real_values_are_marked_and_their_bias_is_measured(folder: Path) -> None:
    # given values beyond the range and users over the cap
    rows = [{**event, "amount": 12 * (event["amount"] > 0)} for event in events(samples=6)]
    rows += [{"who": "x", "amount": "text", "at": 0}]
    (folder / "events.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    result = shoal(folder / "shoal.toml", "--values", folder / "events.jsonl", "--json")
    assert NOT_PRIVATE in result.stderr
    fields = orjson.loads(result.stdout)
    (plan,) = fields["metrics"]
    assert (fields["private"], fields["warning"], plan["private"], plan["warning"]) == (False, NOT_PRIVATE) * 2
    # then the bias is that of clipping 12 to 10, and a third of the samples is left out
    last = of(plan, "naive")["over_time"][-1]
    assert last["bias"] == pytest.approx(-1, abs=1e-4)
    assert last["left_out"] == pytest.approx(1 / 3)
    assert last["error"] == pytest.approx(math.hypot(last["noise_sd"], last["bias"]))
    assert plan["half_the_error"]["users"] is None
    text = shoal(folder / "shoal.toml", "--values", folder / "events.jsonl").stdout
    assert text.startswith(NOT_PRIVATE)
    assert "from the file" in text


def test_what_is_withheld_changes_no_plan(folder: Path) -> None:
    # given a mean on blocks, of real values, that does not say what it withholds, and then does
    of_blocks = {'"naive"': '"multi-tree"\nprior = 5'}
    plans = [planned(said(folder, of_blocks, more), "--values", folder / "events.jsonl") for more in ("", TELLS)]
    # then what counts is the same, whatever the noise of keys that were thrown away
    one, other = ([[look[name] for name in EXACT] for look in of(plan, "multi-tree")["over_time"]] for (plan,) in plans)
    assert one == other
    assert any(samples for samples, *_ in one)


@pytest.mark.parametrize("algorithm", [algorithm.name for algorithm in MEANS])
def test_the_bias_of_real_values_is_what_a_release_without_noise_has(folder: Path, algorithm: str) -> None:
    prior = "\nprior = 2" if algorithm in ("wishful", "single-tree", "multi-tree") else ""
    config = said(folder, {'"naive"': f'"{algorithm}"{prior}', "epsilon = 1\n": "epsilon = 1000000000\n"})
    (metric,) = load(config).metrics
    file = observed(load(config), metric, str(folder / "events.jsonl"), lambda _: None)
    last = ObservedMean.of(metric, 0, file).final(metric)
    release = run(config)[-1]
    assert last.samples == release["samples"]
    assert last.bias == pytest.approx(release["value"] - 5, abs=1e-3)


def test_values_beyond_all_numbers_count_as_the_end_of_the_range(folder: Path) -> None:
    lines = [b'{"who": "a", "amount": %s, "at": 1e9}' % value for value in (b"1e400", b"-1e999", b"1" + b"0" * 310)]
    (folder / "events.jsonl").write_bytes(b"\n".join(lines))
    (plan,) = planned(folder / "shoal.toml", "--values", folder / "events.jsonl")
    assert of(plan, "naive")["over_time"][-1]["bias"] == pytest.approx(0, abs=1e-4)
    # and in a table, which has whole numbers of any length
    rows = ["who,amount,at", *(f"a,{value},1e9" for value in ("1" + "0" * 400, "-1" + "0" * 400))]
    (folder / "events.csv").write_text("\n".join(rows))
    (plan,) = planned(folder / "shoal.toml", "--values", folder / "events.csv")
    assert of(plan, "naive")["over_time"][-1]["bias"] == pytest.approx(0, abs=1e-4)


def test_a_file_is_of_one_topic_and_has_times(folder: Path) -> None:
    second = METRIC.replace('"amount"\ntopic', '"other"\ntopic')
    events = folder / "events.jsonl"
    for changes, more, path, message in (
        ({}, second.replace('"sales"', '"offers"'), events, "--metric NAME"),
        ({}, second, "-", "--metric NAME"),
        ({'time = "at"\n': ""}, "", events, "add `time ="),
        ({"[0, 10]": "[0, 1e-295]"}, "", events, 'metric "amount"'),
    ):
        result = shoal(said(folder, changes, more), "--values", path)
        assert isinstance(result.exception, ConfigError), message
        assert message in str(result.exception)


def test_a_file_without_events_of_the_metric(folder: Path) -> None:
    (folder / "events.jsonl").write_bytes(b"{}\n")
    result = shoal(folder / "shoal.toml", "--values", folder / "events.jsonl")
    assert isinstance(result.exception, InputError)
    assert "no event" in str(result.exception)
