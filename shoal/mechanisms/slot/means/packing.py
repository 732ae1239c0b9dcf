"""BestFit: users' samples put together into arrays of about one size, all of a user's into one array.

Arrays take the place of users in the mechanisms that average them: a user moves one array and no other. Who lies where
is a function of the public counts and of the users' order alone.

Source  Rameshwar, Tandon, Gupta, Singh, Chakraborty and Sharma (2024), "BestFit", with the users who have most first
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush

from shoal.mechanisms import check


@dataclass(slots=True)
class Array:
    """The users in an array, by position, and how many samples they put in together."""

    users: list[int]
    fill: int


def best_fit(counts: Sequence[int], capacity: int) -> Sequence[Array]:
    """Arrays of at most `capacity` samples, to which each user brings its first min(count, capacity).

    Each user, largest first and ties by position, goes to the fullest array that has room for all it brings (of equally
    full ones the oldest), else to a new one. No two arrays would fit into one, so of S samples there are between
    S / capacity and 1 + 2 S / capacity arrays. O(L log L) for L users.

    >>> [(array.users, array.fill) for array in best_fit([1, 5, 2, 1, 9], 6)]
    [([4], 6), ([1, 0], 6), ([2, 3], 3)]
    """
    check.positive(capacity=capacity)
    return _best_fit(tuple(counts), capacity)


@lru_cache(maxsize=4)  # several mechanisms of a cell are compared, and one of them is used
def _best_fit(counts: Sequence[int], capacity: int) -> Sequence[Array]:
    arrays: list[Array] = []
    fitting: list[tuple[int, int]] = []  # (-fill, number): fullest first. All of these have room for the user in turn,
    waiting: list[tuple[int, int]] = []  # (fill, number): emptiest first. None of these has, but later users bring less
    for user in sorted(range(len(counts)), key=lambda user: -counts[user]):
        brings = min(counts[user], capacity)
        while waiting and waiting[0][0] + brings <= capacity:
            fill, number = heappop(waiting)
            heappush(fitting, (-fill, number))
        if fitting:
            number = heappop(fitting)[1]
        else:
            number = len(arrays)
            arrays.append(Array([], 0))
        array = arrays[number]
        array.users.append(user)
        array.fill += brings
        if array.fill + brings <= capacity:
            heappush(fitting, (-array.fill, number))
        elif array.fill < capacity:
            heappush(waiting, (array.fill, number))
    return arrays
