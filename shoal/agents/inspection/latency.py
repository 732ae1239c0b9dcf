"""Lines of a check on the latency of releases, and on what a worker waits for because of it."""

from collections.abc import Iterator

from shoal.agents.kafka.settings import KafkaSettings, times_of
from shoal.models.config.file import Config

RELEASES_A_SECOND = 10_000  # of one metric with a release per contribution, in one partition: make bench-live


def latencies(config: Config) -> Iterator[str]:
    """Lines on the promise, on what follows from it, and on metrics with a release per contribution."""
    settings = KafkaSettings("", config.kafka.app, **times_of(config))
    yield (
        f"latency {settings.latency:g} s: a release is readable so long after the end of its tick, 99 times in 100; a "
        f"fetch waits up to {settings.fetch_wait * 1000:.0f} ms, transactions for which others wait are at least "
        f"{settings.rest * 1000:.0f} ms apart, and others gather for up to {settings.gather:.3g} s"
    )
    for metric in config.metrics:
        if metric.length is None:
            yield (
                f'metric "{metric.name}": a release per contribution; one partition makes about '
                f"{RELEASES_A_SECOND:,} a second"
            )
