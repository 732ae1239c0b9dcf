"""The part of a plan about groups: one of them is planned, and others fare worse.

Noise and what is left out are those of a group, not of all users. Where groups are stated they are alike; in a file
they are not, so the plan, made for the largest, tells what becomes of a typical one and of the worst.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, TypeVar

from shoal.mechanisms.forecast.point import Point, as_json
from shoal.mechanisms.parts.metric import Metric
from shoal.mechanisms.words import number, percent, samples

MOST_GROUPS = 60  # of a file that are looked at
SPREAD = "All users are in one group here: --groups says over how many they spread, and noise is that of each."
Name = TypeVar("Name", str, str | None)


class GroupAhead(NamedTuple):
    """A group at the end, under the configured settings; the names are those of JSON."""

    group: str | None  # None: it is one of many that are alike
    users: int
    samples_per_user: float  # on average
    left_out: float  # part of the samples
    error: float  # infinite where nothing is released

    @classmethod
    def of(cls, name: str | None, users: int, each: float, last: Point) -> "GroupAhead":
        """The group whose last release is to be this one."""
        return cls(name, users, each, last.left_out, last.error)

    def fields(self) -> dict[str, Any]:
        return as_json(self)

    def words(self) -> str:
        given = f"{self.users:,} users, {samples(self.samples_per_user)} each, {percent(self.left_out)} left out"
        return f'"{self.group}" ({given})'


@dataclass(frozen=True, slots=True)
class GroupsAhead:
    """The groups of a metric: how many there are, a typical one and the worst; the names are those of JSON."""

    count: int
    looked_at: int
    users: int  # of all groups together
    planned: str | None  # what the rest of the plan is about; None: one of many that are alike
    typical: GroupAhead  # of median error
    worst: GroupAhead

    @classmethod
    def alike(cls, of_groups: tuple[int, int], group: GroupAhead) -> "GroupsAhead":
        """Stated groups, which are all alike: how many there are, and users of them all."""
        return cls(of_groups[0], 1, of_groups[1], None, group, group)

    @classmethod
    def of(
        cls, looked_at: Sequence[GroupAhead], count: int, users: int, planned: str | None,
        loss: Callable[[GroupAhead], float] = lambda group: group.error,
    ) -> "GroupsAhead":  # fmt: skip
        """The groups that were looked at; `loss` orders them."""
        ordered = sorted(looked_at, key=loss)
        names = {group.group or index for index, group in enumerate(looked_at)}  # a cell may be in several slots
        return cls(count, len(names), users, planned, ordered[(len(ordered) - 1) // 2], ordered[-1])

    def fields(self) -> dict[str, Any]:
        return asdict(self) | {"typical": self.typical.fields(), "worst": self.worst.fields()}

    def words(self, what: str = "group") -> Iterator[str]:
        """A sentence on the groups that are not planned, if they differ."""
        if self.typical.group is None or self.count == 1:
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


def which_users(metric: Metric, groups: GroupsAhead | None) -> str:
    """The words that say which group the users of a plan are in."""
    if metric.place is None:
        return ""
    if groups is None:
        return " in one group"
    if groups.planned is None:
        return f" in each of {groups.count:,} groups ({groups.users:,} in all)"
    return f' in group "{groups.planned}"' + (f", the largest of {groups.count:,}," if groups.count > 1 else "")
