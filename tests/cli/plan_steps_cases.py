"""A sum to plan, with every decay, and the releases of a file that is like what was stated."""

from pathlib import Path
from typing import Any

import orjson

from shoal.models.config.file import load
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import plan_topic
from tests.cli.plan_cases import BEGIN

HOUR, DAY = 3_600_000_000, 86_400_000_000
HOURS, PER_HOUR, USERS = 32, 5, 40  # so that each user has 4 samples
SUM = """
[[metric]]
name = "spend"
topic = "sales"
user = "who"
value = "amount"
time = "at"
statistic = "sum"
range = [0, 10]
epsilon = 1
max_contributions = 4
every = "1h"
"""
WINDOW = 'decay = { kind = "window", length = "8h" }\n'
HALF = 'decay = { kind = "exponential", half_life = "6h" }\n'
ALPHA = 'decay = { kind = "exponential", alpha = 0.9 }\n'
POLYNOMIAL = 'decay = { kind = "polynomial", exponent = 1.5 }\n'
ALL = 'decay = { kind = "all-windows" }\n'
FORWARD = 'decay = { kind = "forward", exponent = 2 }\n'
TABLE = 'decay = { kind = "table", weights = [1, 0.75, "1/3", 0.1] }\n'
FORMULA = 'decay = { kind = "formula", weight = "1/(1+i)^4", horizon = "6h" }\n'
COUNTS = (('"sum"', '"count"'), ("range = [0, 10]\n", ""))
PATENT, MEANS = 'algorithm = "patent"\n', ('"sum"', '"mean"')
STATED = ("--users", USERS, "--over", f"{HOURS}h")


def said(folder: Path, more: str, *changes: tuple[str, str], others: str = "") -> Path:
    text = SUM
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (folder / "shoal.toml").write_text('[privacy]\nepsilon = 100\nunit = "event"\n' + text + more + others)
    return folder / "shoal.toml"


def run(config: Path) -> list[dict[str, Any]]:
    """The releases of a file run with as many events in each hour."""
    plan = plan_topic(load(config), "sales", b"k" * 32, source_partitions=1, contributions_partitions=1)
    lines = []
    for index in range(HOURS * PER_HOUR):
        at = BEGIN // 1000 + index // PER_HOUR * HOUR // 1000 + index % PER_HOUR
        lines.append(Line(index, orjson.dumps({"who": f"u{index % USERS}", "amount": index % 11, "at": at})))
    return [orjson.loads(one.value) for output in FileRun(plan).outputs(lines) for one in output.releases]
