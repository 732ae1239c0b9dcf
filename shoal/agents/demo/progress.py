"""How far a demo is: the events sent and the releases received. The view shows nothing else."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from shoal.models.config.file import Config
from shoal.models.times import time_of_text

Due = dict[str, dict[int, int]]  # of each metric the instants that tell that it is over, and their numbers of releases


class ReceivedRelease(NamedTuple):
    """A release as a consumer reads it; sorts in the order of a file of releases."""

    at: int
    metric: str
    group: str
    seq: int
    raw: bytes
    fields: dict[str, Any]


@dataclass
class DemoProgress:
    """What has gone in and come out so far."""

    config: Config
    count: int  # events in all
    due: Due  # what is released when everything is
    sent: int = 0
    releases: dict[str, list[ReceivedRelease]] = field(default_factory=dict)  # by metric, as they came
    instants: Counter[tuple[str, int]] = field(default_factory=Counter)  # releases by metric and instant
    activations: list[dict[str, Any]] = field(default_factory=list)

    @property
    def published(self) -> int:
        return sum(map(len, self.releases.values()))

    def last(self, metric: str) -> ReceivedRelease | None:
        releases = self.releases.get(metric)
        return releases[-1] if releases else None

    def activated(self, metric: str) -> list[dict[str, Any]]:
        """The activations of a metric so far, in order of level."""
        return sorted((fields for fields in self.activations if fields["metric"] == metric), key=lambda f: f["level"])

    def ordered(self) -> list[ReceivedRelease]:
        """All releases in the order (at, metric, group, seq)."""
        return sorted(release for releases in self.releases.values() for release in releases)

    @property
    def complete(self) -> bool:
        """Whether everything that is due has been released."""
        return all(
            self.instants[metric, at] >= number
            for metric, instants in self.due.items()
            for at, number in instants.items()
        )

    def take(self, raw: bytes) -> None:
        """Count a release or an activation, as the topics have it."""
        fields = orjson.loads(raw)
        if "seq" in fields:
            at = time_of_text(fields["at"]) or 0
            release = ReceivedRelease(at, fields["metric"], fields["group"] or "", fields["seq"], raw, fields)
            self.releases.setdefault(release.metric, []).append(release)
            self.instants[release.metric, at] += 1
        else:
            self.activations.append(fields)
