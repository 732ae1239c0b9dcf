"""Lines of every kind of release, in words; and what is told of brokers."""

import json
from pathlib import Path
from typing import Any

import pytest

from shoal.agents.tail.lines import Lines, Wanted
from shoal.agents.tail.words import Columns, said
from shoal.mechanisms.parts.metric import Metric
from shoal.models.config.file import load
from shoal.models.errors import KafkaError
from shoal.models.releases.record import Activation, Release, record_of
from tests.support.releases import CELLS, HOUR, release

MEAN = """
[audit]
url = "sqlite:///log.db"
[privacy]
epsilon = 4
[[metric]]
name = "basket"
topic = "purchases"
user = "customer"
value = "amount"
time = "at"
statistic = "mean"
range = [0, 180]
every = "1d"
max_contributions = 8
users = 100
epsilon = 1
"""
PAIR = {
    "value": {"mean": 3.26, "variance": 1.5},
    "low": {"mean": 2.96, "variance": 0},
    "high": {"mean": 3.56, "variance": 4},
}


def median(of: float) -> dict[str, Any]:
    return {"quantiles": {"0.5": of}}


SHARES: dict[str, Any] = {"cdf": [0.5, 1], "histogram": [0.5, 0.5]}
CASES = [
    (release("a", 1, 34.6123, 1.3, samples=1204), "34.6 ± 1.3 (33.3 to 36.0)  1,204 samples"),
    (release("a", 1, 1204, 0), "1,204 exactly  10 samples"),
    (release("a", 1, 5.0, 0.3, samples=1), "5.0 ± 0.3 (4.7 to 5.3)  1 sample"),
    (release("a", 1, None, samples=0), "no release  0 samples"),
    (
        release("a", 1, 812.3, 20, samples=None, count=1204.2, count_sd=30.5),
        "810 ± 20 (790 to 840)  about 1,200 ± 70 samples",
    ),
    (
        release("a", 1, None, samples=None, count=4.1, count_sd=30.5),
        "no release: too few samples for the noise  about 0 ± 70 samples",
    ),
    (
        release("a", 1, [51.51, None], low=[51.41, None], high=[51.61, None], samples=3),
        "1  51.51 ± 0.10 (51.41 to 51.61);  2  no release  3 samples",
    ),
    (
        release("a", 1, PAIR["value"], low=PAIR["low"], high=PAIR["high"]),
        "mean  3.3 ± 0.3 (2.9 to 3.6);  variance  2 ± 2 (0 to 4)  10 samples",
    ),
    (
        release("a", 1, SHARES | median(30), low=median(20), high=median(40)),
        "quantile 0.5  30 ± 10 (20 to 40);  shares of 2 bins: --json  10 samples",
    ),
    (release("a", 1, {**SHARES, "quantiles": {}}), "shares of 2 bins: --json  10 samples"),
    (
        release("a", 1, 30.0, 4, group=CELLS[0], every=HOUR, dropped=3),
        "30 ± 4 (26 to 34)  10 samples  3 left out",
    ),
    (
        {
            "at": "2026-03-01T00:00:00Z", "metric": "a", "group": None, "version": 1, "level": 2,
            "prior": [1.5, None],
        },
        "blocks of level 2 count from here on, clipped around 1.5, none"),
]  # fmt: skip


@pytest.fixture
def basket(tmp_path: Path) -> Metric:
    path = tmp_path / "shoal.toml"
    path.write_text(MEAN)
    return load(path).metrics[0]


def words_of(fields: dict[str, Any], metric: Metric | None) -> str:
    return said(read(fields), metric)


def read(fields: dict[str, Any]) -> Release | Activation:
    record = record_of(json.dumps(fields).encode())
    assert record is not None
    return record


@pytest.mark.parametrize(("fields", "text"), CASES)
def test_every_kind_of_release_has_its_words(fields: dict[str, Any], text: str) -> None:
    assert words_of(fields, None) == text


def test_what_a_configuration_knows_of_a_mean_is_words_of(basket: Metric) -> None:
    assert words_of(release("basket", 1, 90.0, 70, samples=0), basket) == "nothing known yet  0 samples"
    wide = words_of(release("basket", 1, 180.0, 9478, samples=9), basket)
    assert wide == "0 ± 10,000 (-10,000 to 10,000)  says nothing: its noise is wider than the range  9 samples"
    beyond = words_of(release("basket", 1, 0.0, 60, samples=9, low=-70.0, high=0.0), basket)
    assert beyond == "0 ± 40 (-70 to 0)  says nothing: its noise took it out of the range  9 samples"
    exact = words_of(release("basket", 1, 0.0, 0, samples=9), basket)
    assert exact == "0 exactly  9 samples"
    other = words_of(release("basket", 1, 90.0, 10, samples=9, version=2), basket)
    assert other == "90 ± 10 (80 to 100)  9 samples  version 2"


def test_a_release_says_by_itself_that_nothing_is_known_yet(basket: Metric) -> None:
    # given the middle of a range, of no samples: with a configuration, without one, and with that of another version
    empty = release("basket", 1, 25.0, 25, samples=0)
    for section, more in ((basket, {}), (None, {}), (None, {"mechanism": "laplace"}), (basket, {"version": 2})):
        assert words_of(empty | more, section).startswith("nothing known yet  0 samples")
    # then of a sum, a noisy number of samples and a sample it is a number all the same
    assert words_of(empty | {"mechanism": "blue"}, None) == "30 ± 30 (0 to 50)  0 samples"
    assert words_of(release("basket", 1, 25.0, 25, samples=None, count=0, count_sd=1), None).startswith("30 ± 30")
    assert words_of(release("basket", 1, 25.0, 25, samples=1), None) == "30 ± 30 (0 to 50)  1 sample"


def test_columns_grow_and_what_has_no_group_has_none() -> None:
    columns = Columns()
    assert columns.line(read(release("a", 1, 5.0)), {}).startswith("2026-03-02  a  5.0 ±")
    assert columns.line(read(release("bc", 13, 5.0, group="BE", every=HOUR)), {}).startswith(
        "2026-03-01 13:00  bc  BE  5.0"
    )
    assert columns.line(read(release("a", 2, 5.0)), {}).startswith("2026-03-03        a       5.0")


def test_brokers_that_are_away_and_back_are_told_once() -> None:
    told: list[str] = []
    lines = Lines(Wanted(), {}, lambda _: None, told.append)
    for _ in range(3):
        lines.away("no broker of here:1 answers", passes=True)
    for _ in range(2):
        lines.back()
    assert told == ["shoal: no broker of here:1 answers; this goes on when one does", "shoal: a broker answers again"]
    with pytest.raises(KafkaError, match="Kafka denies Read"):
        lines.away("Kafka denies Read", passes=False)
