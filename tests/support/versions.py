"""Metrics of several kinds over two topics, and the files that have some of them in some version."""

from fractions import Fraction
from pathlib import Path
from typing import Any

from shoal.models.config.file import Config
from tests.stream.simulation import config

METRICS: dict[str, dict[str, Any]] = {
    "a": {"algorithm": "full", "epsilon": 4000},
    "b": {"algorithm": "naive", "every": "7s", "topic": "more"},
    "c": {"algorithm": "naive", "group": "g", "max_groups": 2, "every": "5s"},
    "d": {"statistic": "sum", "every": "6s", "decay": {"kind": "window", "length": "30s"}, "topic": "more"},
    "s": {"statistic": "mean", "slot": "20s", "group": "g", "max_groups": 2, "algorithm": "baseline",
          "epsilon": 5000, "unit": "user", "max_slots": 9},
}  # fmt: skip
File = dict[str, int]  # metric -> version


def config_of(file: File, key: Path = Path("shoal.key")) -> Config:
    """The configuration that a file of these versions is."""
    metrics = [METRICS[name] | {"name": name, "version": version} for name, version in sorted(file.items())]
    said = config(*metrics, app="shoal", idle_after="1000s")
    return said.model_copy(
        update={"privacy": said.privacy.model_copy(update={"epsilon": Fraction(10**6), "key_file": key})}
    )
