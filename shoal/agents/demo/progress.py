"""How far a demo is: the events sent and the releases received. The view shows nothing else."""

from collections import Counter
from dataclasses import dataclass, field

from shoal.models.config.file import Config
from shoal.models.releases.record import Activation, Release, record_of

Due = dict[str, dict[int, int]]  # of each metric the instants that tell that it is over, and their numbers of releases
Place = tuple[int, str, str, int]  # time, metric, group and seq: the order of a file of releases


def interval(release: Release) -> tuple[float, float, float]:
    """Value, low end and high end of a release that has one number."""
    (value,) = (side for side in (release.value,) if isinstance(side, int | float))
    return value, *ends(release)


def ends(release: Release) -> tuple[float, float]:
    """Low end and high end of a release of one number, which may be too noisy to be released."""
    low, high = (side for side in (release.low, release.high) if isinstance(side, int | float))
    return low, high


@dataclass
class DemoProgress:
    """What has gone in and come out so far."""

    config: Config
    count: int  # events in all
    due: Due  # what is released when everything is
    sent: int = 0
    releases: dict[str, list[Release]] = field(default_factory=dict)  # by metric, as they came
    instants: Counter[tuple[str, int]] = field(default_factory=Counter)  # releases by metric and instant
    activations: list[Activation] = field(default_factory=list)
    lines: list[tuple[Place, bytes]] = field(default_factory=list)  # the releases as they came

    @property
    def published(self) -> int:
        return sum(map(len, self.releases.values()))

    def last(self, metric: str) -> Release | None:
        releases = self.releases.get(metric)
        return releases[-1] if releases else None

    def activated(self, metric: str) -> list[Activation]:
        """The activations of a metric so far, in order of level."""
        return sorted((each for each in self.activations if each.metric == metric), key=lambda each: each.number)

    def ordered(self) -> list[bytes]:
        """All releases as they came, in the order of a file of releases."""
        return [line for _, line in sorted(self.lines)]

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
        record = record_of(raw)
        if isinstance(record, Release):
            self.releases.setdefault(record.metric, []).append(record)
            self.lines.append(((record.time, record.metric, record.group or "", record.seq), raw))
            self.instants[record.metric, record.time] += 1
        elif record is not None:
            self.activations.append(record)
