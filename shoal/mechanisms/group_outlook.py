"""The part of a plan about groups: one of them is planned, and others fare worse.

Noise and what is left out are those of a group, not of all users. Where groups are stated they are alike; in a file
they are not, so the plan, made for the largest, tells what becomes of a typical one and of the worst.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from shoal.mechanisms.outlook import finite
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.words import number, percent, samples

MOST_GROUPS = 60  # of a file that are looked at
SPREAD = "All users are in one group here: --groups says over how many they spread, and noise is that of each."
Name = TypeVar("Name", str, str | None)


@dataclass(frozen=True, slots=True)
class GroupOutlook:
    """A group at the end, under the configured settings."""

    name: str | None  # None: it is one of many that are alike
    users: int
    samples: float  # of a user, on average
    left_out: float  # part of the samples
    error: float  # infinite where nothing is released

    def fields(self) -> dict[str, Any]:
        return {
            "group": self.name,
            "users": self.users,
            "samples_per_user": self.samples,
            "left_out": self.left_out,
            "error": finite(self.error),
        }

    def words(self) -> str:
        given = f"{self.users:,} users, {samples(self.samples)} each, {percent(self.left_out)} left out"
        return f'"{self.name}" ({given})'


@dataclass(frozen=True, slots=True)
class GroupsOutlook:
    """The groups of a metric: how many there are, a typical one and the worst."""

    count: int
    looked_at: int
    users: int  # of all groups together
    planned: str | None  # what the rest of the plan is about; None: one of many that are alike
    typical: GroupOutlook  # of median error
    worst: GroupOutlook

    @classmethod
    def alike(cls, count: int, users: int, group: GroupOutlook) -> "GroupsOutlook":
        """The outlook of stated groups, which are all alike."""
        return cls(count, 1, users, None, group, group)

    @classmethod
    def of(
        cls, looked_at: Sequence[GroupOutlook], count: int, users: int, planned: str | None,
        loss: Callable[[GroupOutlook], float] = lambda group: group.error,
    ) -> "GroupsOutlook":  # fmt: skip
        """The outlook of the groups that were looked at; `loss` orders them."""
        ordered = sorted(looked_at, key=loss)
        names = {group.name or index for index, group in enumerate(looked_at)}  # a cell may be in several slots
        return cls(count, len(names), users, planned, ordered[(len(ordered) - 1) // 2], ordered[-1])

    def fields(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "looked_at": self.looked_at,
            "users": self.users,
            "planned": self.planned,
            "typical": self.typical.fields(),
            "worst": self.worst.fields(),
        }

    def words(self, what: str = "group") -> Iterator[str]:
        """A sentence on the groups that are not planned, if they differ."""
        if self.typical.name is None or self.count == 1:
            return
        typical, worst = (
            f"error {number(group.error)} in the {which}, {group.words()}"
            for which, group in ((f"typical {what}", self.typical), ("worst", self.worst))
        )
        looked = "" if self.looked_at == self.count else f"; {self.looked_at} were looked at"
        yield f"as configured, {typical}; {worst}{looked}"


def by_size(groups: Mapping[Name, Sequence[object]]) -> list[Name]:
    """The names in the order of their numbers of samples; of equals, the first is last.

    >>> by_size({"a": [1, 2], "b": [3], "c": [4, 5]})
    ['b', 'c', 'a']
    """
    return sorted(reversed(list(groups)), key=lambda name: len(groups[name]))


def some(names: Sequence[Name]) -> list[Name]:
    """At most sixty of many names, evenly spread, with the first and the last.

    >>> len(some([str(number) for number in range(1000)])), some(["a", "b"])
    (60, ['a', 'b'])
    """
    if len(names) <= MOST_GROUPS:
        return list(names)
    return [names[round(i * (len(names) - 1) / (MOST_GROUPS - 1))] for i in range(MOST_GROUPS)]


def which_users(metric: Metric, groups: GroupsOutlook | None) -> str:
    """The words that say which group the users of a plan are in."""
    if metric.place is None:
        return ""
    if groups is None:
        return " in one group"
    if groups.planned is None:
        return f" in each of {groups.count:,} groups ({groups.users:,} in all)"
    return f' in group "{groups.planned}"' + (f", the largest of {groups.count:,}," if groups.count > 1 else "")
