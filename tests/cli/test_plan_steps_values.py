"""`shoal plan --values` of sums, counts and decayed means: caps, and what they leave out, are those of a release."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from shoal.mechanisms.forecast.plan import NOT_PRIVATE
from shoal.mechanisms.forecast.step_workload import MOST_STEPS
from shoal.models.config.file import load
from shoal.models.errors import InputError
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import plan_topic
from tests.cli.plan_cases import BEGIN, of, planned, shoal
from tests.cli.plan_steps_cases import HALF, HOUR, MEANS, USERS, WINDOW, said


def events(samples: int = 6, groups: int = 1) -> list[dict[str, Any]]:
    """Users with as many samples, an hour apart."""
    return [
        {"who": f"u{user}", "amount": 7, "at": BEGIN // 1000 + number * HOUR // 1000 + user, "country": number % groups}
        for number in range(samples) for user in range(USERS)
    ]  # fmt: skip


def written(folder: Path, rows: list[dict[str, Any]]) -> Path:
    (folder / "events.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    return folder / "events.jsonl"


def test_a_file_says_who_contributes_when_and_that_it_is_not_private(tmp_path: Path) -> None:
    # given users with 6 samples in the first 6 hours, of which 4 count, and one sample in hour 12
    rows = [*events(), {"who": "late", "amount": 7, "at": BEGIN // 1000 + 11 * HOUR // 1000}]
    path, config = written(tmp_path, rows), said(tmp_path, HALF, MEANS)
    result = shoal(config, "--values", path, "--json")
    fields = orjson.loads(result.stdout)
    (plan,) = fields["metrics"]
    assert NOT_PRIVATE in result.stderr
    assert (fields["private"], plan["private"], plan["warning"]) == (False, False, NOT_PRIVATE)
    assert plan["workload"] | {"spread": 0, "samples_per_unit": 0} == {
        "users": 41, "samples_per_user": pytest.approx(241 / 41), "samples_per_unit": 0, "over": 12 * 3600, "steps": 12,
        "pattern": "that of the file", "spread": 0,
    }  # fmt: skip
    # then noise, samples and what is left out are those of its releases
    run = FileRun(plan_topic(load(config), "sales", b"k" * 32, source_partitions=1, contributions_partitions=1))
    lines = [Line(index, orjson.dumps(row)) for index, row in enumerate(rows)]
    releases = [orjson.loads(one.value) for output in run.outputs(lines) for one in output.releases]
    looks = of(plan, "sharp")["over_time"]
    assert len(looks) == len(releases) == 12
    for look, release in zip(looks, releases, strict=True):
        assert (look["samples"], look["noise_sd"]) == pytest.approx((release["samples"], release["noise_sd"]))
    assert [look["left_out"] for look in looks][:4] == [0] * 4
    assert looks[5]["left_out"] == pytest.approx(1 - looks[5]["samples"] / sum(40 * 0.5 ** (k / 6) for k in range(6)))
    text = shoal(config, "--values", path).stdout
    assert text.startswith(NOT_PRIVATE)
    assert "41 users with 5.88 samples each over 12h, from the file" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "cap", "groups", "counted"),
    [
        ("user", 4, 2, 2),  # 6 samples of a user, of which 4 count, half of them in the larger group
        ("user", 4, 1, 3),  # those of the other group are left out, and take none of the cap
        ("user-2h", 1, 2, 3),
        ("user-2h", 1, 1, 3),
        ("event", None, 1, 3),
    ],
)
def test_caps_of_a_file_are_those_of_a_unit_in_all_groups_together(
    tmp_path: Path, unit: str, cap: int | None, groups: int, counted: int
) -> None:
    # given users with 3 samples in one group and 3 in another, and a release of everything
    rows = events(6, groups=2)
    changes = f'unit = "{unit}"\n' + (f"max_contributions = {cap}\nmax_groups = {groups}\n" if cap else "")
    config = said(tmp_path, 'group = "country"\n' + HALF.replace("6h", "30d"), ("max_contributions = 4\n", changes))
    (plan,) = planned(config, "--values", written(tmp_path, rows))
    # then as many count as in its releases
    run = FileRun(plan_topic(load(config), "sales", b"k" * 32, source_partitions=1, contributions_partitions=1))
    lines = [Line(index, orjson.dumps(row)) for index, row in enumerate(rows)]
    releases = [orjson.loads(one.value) for output in run.outputs(lines) for one in output.releases]
    last = [one["samples"] for one in releases if one["group"] == "0"][-1]
    samples = of(plan, "sharp")["over_time"][-1]["samples"]
    assert samples == pytest.approx(last, rel=1e-3)
    assert samples == pytest.approx(counted * USERS, rel=1e-2)


def test_a_file_of_too_many_steps_is_refused(tmp_path: Path) -> None:
    rows = [{"who": "a", "amount": 1, "at": at} for at in (0, MOST_STEPS * HOUR // 1000)]
    refused = shoal(said(tmp_path, WINDOW), "--values", written(tmp_path, rows))
    assert isinstance(refused.exception, InputError)
    assert "give fewer events" in str(refused.exception)
