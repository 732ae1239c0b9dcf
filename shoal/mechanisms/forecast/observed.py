"""A workload that a file holds: events as bound reads them, and the accounts that say whose samples count.

NOT PRIVATE: what is made of it is to be treated like the events. Nothing here reads a file or knows an account: both
come from `shoal/agents/plan/observed.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.statistic import Block

NOT_THERE = ("late", "groups_left_out")  # reasons for which a sample is none of a group's


class TooMuch(ValueError):
    """A file has more than can be planned."""


class Sample(NamedTuple):
    """An event of a file that a metric accepts."""

    user: bytes
    group: str | None  # or cell
    values: tuple[int | float, ...]  # of its coordinates, as they are in the event
    time: int  # microseconds, its own
    effective: int  # that at which it counts: lateness has been applied


class Sent(NamedTuple):
    """A block that an account has closed."""

    group: str | None
    effective: int
    user: bytes
    block: Block


class Accounted(NamedTuple):
    """The fate of samples: for each the reason why it does not count, None if it does; and what the accounts sent."""

    reasons: Sequence[str | None]
    sent: Sequence[Sent]


@dataclass(frozen=True, eq=False)
class Observed:
    """The events of a file that a metric accepts, in the order in which bound reads them."""

    samples: Sequence[Sample]
    account: Callable[[Metric, Sequence[Sample]], Accounted]  # the accounts of a metric, fresh, with these samples
    key: bytes = field(repr=False)  # thrown away with the plan
    late: int = 0  # events that the metric's clock refuses

    @property
    def users(self) -> int:
        return len({sample.user for sample in self.samples})

    def by_group(self, metric: Metric) -> Mapping[str | None, list[Sample]]:
        """The samples of each group, in the order of reading; without those of users in too many groups."""
        groups: dict[str | None, list[Sample]] = {}
        reasons = self.account(metric, self.samples).reasons
        for sample, reason in zip(self.samples, reasons, strict=True):
            if reason not in NOT_THERE:
                groups.setdefault(sample.group, []).append(sample)
        return groups
