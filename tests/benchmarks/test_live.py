"""Bars of `make bench-live`, and the tables that it writes into the performance guide."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks import figures
from benchmarks.live import page
from benchmarks.live.bars import BARS, judged
from benchmarks.live.rows import EACH_CONTRIBUTION, EACH_SECOND, FULL, QUICK, Row
from benchmarks.live.worker import configure
from benchmarks.page import kept
from shoal.models.config.file import load

HOURLY = Row(8, 1_000)
WORKER = "8 partitions, 1,000 events/s, ticks of 1h, latency 1s, naive: {} cores of the worker, more than a quarter"


def found(**changes: Any) -> dict[str, Any]:
    """The result of a benchmark row that meets every bar, but for these changes."""
    costs = {"worker": 0.03, "beyond": 0.01, "alone": 0.1, "beside": 0.2}
    return {**costs, "transactions": 2.0, "bytes_an_event": 2.0, "p50": 0.1, "p99": 0.15, **changes}


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({}, []),
        ({"worker": 0.12}, []),  # within a quarter of the bar
        ({"worker": 0.13}, [WORKER.format(0.13)]),
        ({"worker": 0.13, "beside": 1.6}, []),  # other programs disturbed it
        ({"failed": "the worker did not start"}, ["not measured: the worker did not start"] * 3),
    ],
)
def test_a_bar_fails_if_it_is_missed_by_more_than_a_quarter(changes: dict[str, Any], sentences: list[str]) -> None:
    result = changes if "failed" in changes else found(**changes)
    failed = [one.sentence for one in judged([(HOURLY, result)]) if one.fails]
    assert len(failed) == len(sentences)
    assert all(part in sentence for part, sentence in zip(sentences, failed, strict=True))


def test_every_bar_has_a_row_and_quick_rows_are_of_a_full_run() -> None:
    assert [bar for bar in BARS if not any(bar.is_about(row) for row in FULL)] == []
    assert {row.label for row in QUICK} <= {row.label for row in FULL}
    assert len({row.label for row in FULL}) == len(FULL)


def test_a_worker_is_told_what_its_row_says(tmp_path: Path) -> None:
    for row, cadence, latency in ((Row(8, 0, EACH_SECOND), 1_000_000, 1_000_000), (FULL[-1], 0, 200_000)):
        config = load(configure(tmp_path, f"app-{cadence}", row, "localhost:9092", 8000))
        assert (config.cadence, config.latency) == (cadence, latency)
    assert FULL[-1].every == EACH_CONTRIBUTION


def test_the_tables_have_every_row_its_bars_and_what_is_missing() -> None:
    rows = [(HOURLY, found(worker=0.12)), (QUICK[2], found(beside=1.7, worker=0.2)), (QUICK[3], {"failed": "it ended"})]
    streams = {"rows": [{"partitions": 8, "rate": 1_000, **found()}]}
    more = {"backlog": {"naive": [0.7]}, "releases_a_second": 9_500.0, "streams": streams}
    said = page.tables({"rows": page.to_json(rows), **more})
    assert '| `every = "1h"`, `naive` | 8 | 1,000 | 0.120 | 0.010 | 0.100 | 2.0 |' in said
    assert '| `every = "1s"`, `latency = "1s"`, `naive` (busy) | 8 | 1,000 | 0.200 |' in said
    assert '| `every = "1s"`, `latency = "200ms"`, `naive` | 8 | 1,000 | failed: it ended |' in said
    assert "| Kafka Streams, warm, exactly-once v2 | 8 | 1,000 | 0.030 |" in said
    assert "| cores of the worker | 0.120 | 0.1 | **missed** |" in said
    assert "| cores of the worker | 0.200 | 0.1 | busy |" in said
    assert "* 9,500 releases a second in one partition" in said


def test_the_guide_says_what_the_last_full_run_found() -> None:
    guide = page.GUIDE.read_text()
    assert figures.within(guide, page.COMMAND, page.block(kept(page.NAME))) == guide
