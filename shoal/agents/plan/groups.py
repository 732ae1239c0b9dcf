"""What a plan says of groups: one of them is planned, and others fare worse.

Noise and what is left out are those of a group, not of all users. Where groups are stated they are alike; in a file
they are not, so the plan, made for the largest, tells what becomes of a typical one and of the worst.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

MOST_GROUPS = 60  # of a file that are looked at


@dataclass(frozen=True, slots=True)
class GroupOutlook:
    """A group under the settings that are configured, at the end."""

    name: str | None  # None: it is one of many that are alike
    users: int
    samples: float  # of a user, on average
    left_out: float  # part of the samples
    error: float  # infinite where nothing is released


@dataclass(frozen=True, slots=True)
class GroupsOutlook:
    """All groups."""

    count: int
    looked_at: int
    users: int  # of all groups together
    planned: str | None  # what the rest of the plan is about; None: one of many that are alike
    typical: GroupOutlook  # of median error
    worst: GroupOutlook

    @property
    def are_alike(self) -> bool:
        """Whether one stands for all."""
        return self.typical.name is None


def by_size(groups: Mapping[str, Sequence[object]]) -> list[str]:
    """Names, by how many events the groups have; of the largest the one that was first is last.

    >>> by_size({"a": [1, 2], "b": [3], "c": [4, 5]})
    ['b', 'c', 'a']
    """
    return sorted(reversed(list(groups)), key=lambda name: len(groups[name]))


def some(names: Sequence[str]) -> list[str]:
    """Some of many, evenly spread, with the first and the last.

    >>> len(some([str(number) for number in range(1000)])), some(["a", "b"])
    (60, ['a', 'b'])
    """
    if len(names) <= MOST_GROUPS:
        return list(names)
    return [names[round(i * (len(names) - 1) / (MOST_GROUPS - 1))] for i in range(MOST_GROUPS)]


def outlook_of(
    found: Sequence[GroupOutlook],
    count: int,
    users: int,
    planned: str | None,
    loss: Callable[[GroupOutlook], float] = lambda group: group.error,
) -> GroupsOutlook:
    """Of the groups that were looked at; `loss` orders them."""
    ordered = sorted(found, key=loss)
    names = {one.name or number for number, one in enumerate(found)}  # one may be looked at in several slots
    return GroupsOutlook(count, len(names), users, planned, ordered[(len(ordered) - 1) // 2], ordered[-1])


def alike(count: int, users: int, one: GroupOutlook) -> GroupsOutlook:
    """Groups that are stated."""
    return GroupsOutlook(count, 1, users, None, one, one)
