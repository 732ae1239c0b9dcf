"""Lines of `shoal check` on the latency of releases."""

from shoal.agents.inspection.latency import latencies
from tests.stream.simulation import config

NAIVE = {"algorithm": "naive"}


def test_what_follows_from_a_latency_is_said() -> None:
    # given a file that names none: a tenth of its shortest tick, within limits
    assert next(latencies(config(NAIVE | {"every": "5s"}, NAIVE | {"every": "1h"}))).startswith("latency 0.5 s: ")
    # and one that names one
    assert [*latencies(config(NAIVE | {"every": "1h"}, latency="2s"))] == [
        "latency 2 s: a release is readable so long after the end of its tick, 99 times in 100; a fetch waits up to "
        "500 ms, transactions for which others wait are at least 500 ms apart, and others gather for up to 10 s"
    ]


def test_what_one_partition_makes_is_said_of_releases_per_contribution() -> None:
    promise, most = latencies(config(NAIVE | {"every": "contribution"}, NAIVE | {"every": "1h"}))
    assert promise.startswith("latency 0.2 s: ")
    assert most == 'metric "m0": a release per contribution; one partition makes about 10,000 a second'
