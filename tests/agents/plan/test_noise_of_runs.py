"""The noise that is planned is that of a run: for every golden metric whose noise no private choice decides."""

import json
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from shoal.agents.plan.observed import observed
from shoal.mechanisms.continual_mean.statistic import ContinualMean
from shoal.mechanisms.forecast.mean_report import MeanReport
from shoal.mechanisms.forecast.presence import SidesReport
from shoal.mechanisms.forecast.sides import SidesForecast
from shoal.mechanisms.forecast.step_report import StepReport
from shoal.mechanisms.kinds import kind_of
from shoal.mechanisms.parts.at import EachContribution, Slots, Steps, Updates
from shoal.mechanisms.parts.by import AroundPrior, FewUsersPrior, Sharp
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.parts.of import Count, PublicCount, Users, Variance
from shoal.mechanisms.workload import Stated
from shoal.models.times import time_of_text
from tests.golden.case import Case
from tests.golden.configurations import CASES
from tests.golden.driver import config_of, run_file
from tests.golden.events import events_of
from tests.support.cover import in_a_loop


def is_foretold(metric: Metric) -> bool:
    """Whether the noise follows from who contributes when; that of a variance also depends on the mean."""
    is_chosen = isinstance(metric.at, EachContribution | Slots) or isinstance(metric.of, PublicCount | Variance)
    is_chosen |= isinstance(metric.at, Steps) and isinstance(metric.at.decay, Updates)  # numbered by updates
    if kind_of(metric) is ContinualMean:
        by: Any = metric.by
        has_choice = isinstance(by, AroundPrior) and isinstance(by.priors, FewUsersPrior)
        is_chosen |= isinstance(by, Sharp) or by.sigma(0) is not None or has_choice or by.withheld
    return not is_chosen and not metric.protects_presence and metric.source.time is not None


VALUES = {
    f"{case.name}: {metric.name}": (case, metric)
    for case in CASES
    for metric in config_of(case).metrics
    if is_foretold(metric)
}
COUNTS = {
    f"{case.name}: {metric.name}": (case, metric)
    for case in CASES
    for metric in config_of(case).metrics
    if metric.protects_presence and isinstance(metric.of, Count | Users) and not metric.finds_keys
}


@cache
def released(case: Case) -> dict[tuple[str, str | None], dict[int, Any]]:
    """The releases of a run over the case's file, by metric and group, and by time."""
    found: dict[tuple[str, str | None], dict[int, Any]] = defaultdict(dict)
    for line in run_file(case).releases:
        one = json.loads(line)
        at = time_of_text(one["at"])
        assert at is not None
        found[one["metric"], one.get("group")][at] = one
    return found


@in_a_loop
@pytest.mark.parametrize("name", VALUES)
def test_the_noise_over_a_file_is_what_a_run_over_it_states(tmp_path: Path, name: str) -> None:
    case, metric = VALUES[name]
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"\n".join(event.value or b"" for event in events_of(case.stream) if event.in_files) + b"\n")
    file = observed(config_of(case), metric, str(path), lambda read: None)
    report: Any = (StepReport if isinstance(metric.at, Steps) else MeanReport)(metric, file)
    group = report.work.group if isinstance(metric.at, Steps) else report.source.name
    releases = released(case)[metric.name, group]
    first = min(metric.every.index(sample.effective) for sample in file.samples if sample.group == group)
    begin = metric.every.start(first)
    compared = 0
    for point in report.source.outlook(metric).points:
        stated = releases.get(begin + point.at)
        if stated is not None and point.noise_sd is not None:
            noise_sd = stated["noise_sd"][0] if isinstance(stated["noise_sd"], list) else stated["noise_sd"]
            assert point.noise_sd == pytest.approx(noise_sd, rel=1e-5)
            compared += 1
    assert compared


@in_a_loop
@pytest.mark.parametrize("name", COUNTS)
def test_the_noise_of_a_count_that_hides_presence_is_what_a_run_states(name: str) -> None:
    case, metric = COUNTS[name]
    forecast = SidesForecast(metric, SidesReport(metric, Stated(40, 3.0, None)).steady)
    groups = [releases for (of, _), releases in released(case).items() if of == metric.name]
    assert groups
    for releases in groups:
        for at, one in releases.items():
            tick = metric.every.fits(at - (metric.start or 0))
            assert forecast.point(tick).noise_sd == pytest.approx(one["noise_sd"], rel=1e-5)
