"""A mean to plan, `shoal plan` of it, and the releases of a file that is like what was stated."""

from pathlib import Path
from typing import Any

import orjson
from typer.testing import CliRunner, Result

from shoal.agents.cli.main import app
from shoal.models.config.file import load
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import plan_topic

PRIVACY = "[privacy]\nepsilon = 100\n"
METRIC = """
[[metric]]
name = "amount"
topic = "sales"
user = "who"
value = "amount"
time = "at"
statistic = "mean"
algorithm = "naive"
range = [0, 10]
epsilon = 1
max_contributions = 4
users = 40
every = "1d"
"""
USERS, SAMPLES, DAYS = 40, 4, 8
DAY = 86_400_000_000
BEGIN = 1_704_067_200_000_000  # a midnight


def events(users: int = USERS, samples: int = SAMPLES, days: int = DAYS) -> list[dict[str, Any]]:
    """Constant rates and even phases, as `--pattern even` has it; values at both ends of the range."""
    found = []
    for user in range(users):
        phase = (user + 0.5) / users
        for sample in range(1, samples + 1):
            at = BEGIN + round((sample - phase) / samples * days * DAY) - 1
            found.append({"who": f"u{user}", "amount": 10 * (user % 2), "at": at // 1000, "w": 1, "country": user % 3})
    return sorted(found, key=lambda event: event["at"])


def shoal(*arguments: object, columns: int = 200) -> Result:
    return CliRunner().invoke(app, ["plan", *map(str, arguments)], env={"COLUMNS": str(columns)})


def planned(*arguments: object) -> list[dict[str, Any]]:
    result = shoal(*arguments, "--json")
    if result.exception is not None:
        raise result.exception
    metrics: list[dict[str, Any]] = orjson.loads(result.stdout)["metrics"]
    return metrics


def said(folder: Path, changes: dict[str, str], more: str = "") -> Path:
    text = METRIC
    for before, after in changes.items():
        assert before in text
        text = text.replace(before, after)
    (folder / "shoal.toml").write_text(PRIVACY + text + more)
    return folder / "shoal.toml"


def run(config: Path, key: int = 0) -> list[dict[str, Any]]:
    """The releases of a file run, without a log."""
    plan = plan_topic(load(config), "sales", bytes([key % 256, key // 256] * 16), source_partitions=1,
                      contributions_partitions=1)  # fmt: skip
    lines = [Line(index, orjson.dumps(event)) for index, event in enumerate(events())]
    return [orjson.loads(one.value) for output in FileRun(plan).outputs(lines) for one in output.releases]


def of(plan: dict[str, Any], algorithm: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in plan["algorithms"] if one["algorithm"] == algorithm)
    return found
