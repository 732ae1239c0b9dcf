"""What happens to the machines of a case: transactions of many sizes, pauses and crashes, always the same ones.

It comes in two halves. Between them every machine is gone.
"""

from tests.golden.driver import HOMES, SOURCES, Cluster
from tests.golden.events import Numbers

ROUNDS = 12
WALL = 1_700_000_000_000  # milliseconds, when the first round begins
BETWEEN = 20_000  # from round to round
PAUSE = range(4, 8)  # rounds in which the last source partition has nothing to read, for longer than `idle_after`
ALL = 1_000_000


def first_half(cluster: Cluster, *, at_once: bool) -> None:
    """Read about half of the events, or all of them at once; then all machines are gone."""
    for number in range(1 if at_once else ROUNDS):
        wall = WALL + BETWEEN * number
        for index in range(SOURCES):
            _read(cluster, index, number, wall, ALL if at_once else 0)
        for index in range(HOMES):
            _work(cluster, index, number)
    for index in range(SOURCES):
        cluster.crash_bound(index)
    for index in range(HOMES):
        cluster.crash_release(index)


def second_half(cluster: Cluster) -> None:
    """Read the rest, and a little later find that there is nothing more."""
    wall = WALL + BETWEEN * ROUNDS
    while any(cluster.left(index) for index in range(SOURCES)):
        wall += BETWEEN
        for index in range(SOURCES):
            if cluster.left(index):
                cluster.read(index, 97, wall)
                cluster.commit_bound(index, wall)
        for index in range(HOMES):
            _finish(cluster, index, pieces=40)
    for number in range(1, 4):
        for index in range(SOURCES):
            cluster.read(index, 1, wall + BETWEEN * number)
            cluster.commit_bound(index, wall + BETWEEN * number)
    for index in range(HOMES):
        _finish(cluster, index, pieces=ALL)


def _read(cluster: Cluster, index: int, number: int, wall: int, count: int) -> None:
    """A round of a source partition: one transaction; every fifth time a crash before its commit, and once more."""
    numbers = Numbers(100 * number + index)
    if not count and not (index == SOURCES - 1 and number in PAUSE):
        count = 1 + numbers.below(max(1, 2 * cluster.left(index) // (ROUNDS + 6)))
    if (number + index) % 5 == 2:
        cluster.read(index, count // 2, wall)
        cluster.crash_bound(index)
    cluster.read(index, count, wall)
    cluster.commit_bound(index, wall)


def _work(cluster: Cluster, index: int, number: int) -> None:
    """A round of a home: some pieces of work, some messages; every third time a crash before the commit."""
    numbers = Numbers(100 * number + index)
    for _ in range(4):
        cluster.work(index, 1 + numbers.below(4), 1 + numbers.below(60))
        if numbers.below(3) == 0:
            cluster.crash_release(index)
        else:
            cluster.commit_release(index)


def _finish(cluster: Cluster, index: int, *, pieces: int) -> None:
    while cluster.busy(index):
        cluster.work(index, 25, pieces)
        cluster.commit_release(index)
