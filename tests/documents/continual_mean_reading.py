"""George, Ramesh, Singh and Tyagi (2024), Algorithms 1 to 7, written down again from their text, in floats over [0, 1].

Nothing of shoal is used here. Logarithms of numbers of levels are binary and rounded down, as a tree has whole levels.
Where the page docs/explanation/documents.md says "corrected", the reading says so too.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

Noise = Callable[[int], float]  # the draw of the element at which a partial sum is made, for a scale of 1


class Arrival(NamedTuple):
    """A sample of [0, 1], and its user."""

    user: str
    value: float


class BinaryMechanism:
    """Algorithm 1: the partial sums of the last nodes, by level, and what is published of them."""

    def __init__(self, scale: float, noise: Noise) -> None:
        self.scale, self.noise, self.t = scale, noise, 0
        self.exact: dict[int, float] = defaultdict(float)
        self.noisy: dict[int, float] = defaultdict(float)

    def feed(self, element: float) -> None:
        self.t += 1
        level = (self.t & -self.t).bit_length() - 1  # the lowest 1 bit of t
        self.exact[level] = sum(self.exact[below] for below in range(level)) + element
        for below in range(level):
            self.exact[below] = self.noisy[below] = 0.0
        self.noisy[level] = self.exact[level] + self.scale * self.noise(self.t)

    def sum(self) -> float:
        return sum(self.noisy[level] for level in range(self.t.bit_length()) if self.t >> level & 1)


def depth(elements: int) -> int:
    """1 + log N, the partial sums in which an element is."""
    return 1 + math.floor(math.log2(elements))


def project(block: float, middle: float, half_width: float) -> float:
    return min(max(block, middle - half_width), middle + half_width)


def weight(level: int) -> int:
    """The samples that are withheld, and released when a user's 2**level-th one comes."""
    return 1 if level == 0 else 2 ** (level - 1)


def blocks(arrivals: list[Arrival]) -> Iterator[tuple[str, int, float] | None]:
    """Exponential withhold-release: at each time the block that a user's 2**level-th sample releases, or none."""
    samples: dict[str, list[float]] = defaultdict(list)
    for user, value in arrivals:
        samples[user].append(value)
        count = len(samples[user])
        level = count.bit_length() - 1
        yield (user, level, sum(samples[user][-weight(level) :])) if count == 2**level else None


Means = Iterator[float | None]


def naive(arrivals: list[Arrival], n: int, m: int, epsilon: float, noise: Noise) -> Means:
    """Algorithm 2: every sample is an element, and a user has m of them."""
    tree = BinaryMechanism(m * depth(n * m) / epsilon, noise)
    for _, value in arrivals:
        tree.feed(value)
        yield tree.sum() / tree.t


class Given(NamedTuple):
    """What Algorithms 3 to 5 are told: sizes, budget, and a prior that is at most 1 / sqrt(m) off the mean."""

    n: int
    m: int
    epsilon: float
    failure: float
    prior: float

    @property
    def top(self) -> int:
        return math.ceil(math.log2(self.m))

    def half_width(self, samples: int, projections: int) -> float:
        """(2) with one projection of a user, (4) with as many as there are levels."""
        chance = math.sqrt(samples / 2 * math.log(2 * self.n * projections / self.failure))
        return chance + samples / math.sqrt(self.m)


def wishful(arrivals: list[Arrival], told: Given, noise: Noise) -> Means:
    """Algorithm 3, without the prior that it publishes before its first block."""
    half = told.half_width(told.m, 1)
    tree = BinaryMechanism(2 * half * depth(told.n) / told.epsilon, noise)  # (3)
    samples: dict[str, list[float]] = defaultdict(list)
    for user, value in arrivals:
        samples[user].append(value)
        if len(samples[user]) == told.m:
            tree.feed(project(sum(samples[user]), told.m * told.prior, half))
        yield tree.sum() / (tree.t * told.m) if tree.t else None


def single_tree(arrivals: list[Arrival], told: Given, noise: Noise) -> Means:
    """Algorithm 4: one binary mechanism for the blocks of all levels."""
    elements, widest = told.n * (1 + told.top), told.half_width(weight(told.top), told.top)
    tree = BinaryMechanism(2 * widest * (1 + told.top) * depth(elements) / told.epsilon, noise)  # (5)
    released = 0
    for block in blocks(arrivals):
        if block:
            _, level, total = block
            tree.feed(project(total, weight(level) * told.prior, told.half_width(weight(level), told.top)))
            released += weight(level)
        yield tree.sum() / released if released else None


def multi_tree(arrivals: list[Arrival], told: Given, noise: Noise) -> Means:
    """Algorithm 5: a binary mechanism for each level."""
    halves = [told.half_width(weight(level), told.top) for level in range(told.top + 1)]
    scales = [2 * half * depth(told.n) * (told.top + 1) / told.epsilon for half in halves]  # (7)
    trees = [BinaryMechanism(scale, noise) for scale in scales]
    released = 0
    for block in blocks(arrivals):
        if block:
            _, level, total = block
            trees[level].feed(project(total, weight(level) * told.prior, halves[level]))
            released += weight(level)
        yield sum(tree.sum() for tree in trees) / released if released else None


def arrays_needed(level: int, top: int, epsilon: float, failure: float) -> int:
    """k of Algorithm 7, with epsilon' = epsilon / 2L and beta = failure / 3L."""
    return math.ceil(16 * 2 * top / epsilon * math.log(2 ** (level / 2) * 3 * top / failure))


def arrays_of_blocks(level: int, top: int, epsilon: float, failure: float) -> int:
    """Corrected: half of k, rounded down, with a rate that allows for a user in one array instead of two."""
    return max(1, math.floor(8 * 2 * top / epsilon * math.log(2 ** (level / 2) * 3 * top / failure)))


def offered(count: int, level: int) -> int:
    """What a user has for the arrays of a level: at most one array.

    Corrected: in print it is min(M_u, 2**(level - 1)), which may lie in two arrays. The power of two in it lies in one.
    """
    return 2 ** (min(count, 2 ** (level - 1)).bit_length() - 1) if count else 0


def median_costs(samples: dict[str, list[float]], level: int, arrays: int) -> dict[float, int]:
    """Algorithm 7 up to its choice: the cost of every midpoint of T."""
    size = 2 ** (level - 1)
    units = [(offered(len(own), level), user) for user, own in samples.items()]  # of equal offers the first to come
    filled = [x for count, user in sorted(units, key=lambda unit: -unit[0]) for x in samples[user][:count]]
    count = math.ceil(2 ** (level / 2) / 2)
    midpoints = [(i + 0.5) / count for i in range(count)]
    nearest: Counter[float] = Counter()
    for array in range(arrays):
        mean = sum(filled[array * size : (array + 1) * size]) / size
        nearest[max(midpoints, key=lambda y: (-abs(y - mean), y))] += 1
    return {
        y: max(sum(nearest[other] for other in midpoints if other < y), sum(nearest[z] for z in midpoints if z > y))
        for y in midpoints
    }


class Full:
    """Algorithm 6; which midpoint the exponential mechanism picks is asked of `choose`."""

    def __init__(
        self, n: int, m: int, epsilon: float, failure: float, choose: Callable[[int, dict[float, int]], float]
    ) -> None:
        self.n, self.epsilon, self.failure, self.choose = n, epsilon, failure, choose
        self.top = math.ceil(math.log2(m))

    def half_width(self, level: int) -> float:
        """(9): what blocks scatter by, and what the prior may be off."""
        arrays = arrays_of_blocks(level, self.top, self.epsilon, self.failure)
        scatter = math.sqrt(weight(level) / 2 * math.log(2 * self.n * self.top / (self.failure / 3)))
        return scatter + math.sqrt(2**level * math.log(2 * arrays * 3 * self.top / self.failure))

    def scale(self, width: float) -> float:
        """(10): each of L + 1 binary mechanisms has epsilon / 2(L + 1)."""
        return width * depth(self.n) * 2 * (self.top + 1) / self.epsilon

    def means(self, arrivals: list[Arrival], noise: Noise) -> Means:
        priors: dict[int, float] = {}
        buffers: dict[int, list[float]] = defaultdict(list)
        widths = [1.0, 1.0, *(2 * self.half_width(level) for level in range(2, self.top + 1))]
        trees = [BinaryMechanism(self.scale(width), noise) for width in widths]
        samples: dict[str, list[float]] = defaultdict(list)

        def release(level: int, total: float) -> None:
            middle = weight(level) * priors[level] if level > 1 else total
            trees[level].feed(project(total, middle, widths[level] / 2))

        for (user, value), block in zip(arrivals, blocks(arrivals), strict=True):
            samples[user].append(value)
            if block:
                _, level, total = block
                if level < 2 or level in priors:
                    release(level, total)
                else:
                    buffers[level].append(total)
            for level in range(2, self.top + 1):
                arrays = arrays_of_blocks(level, self.top, self.epsilon, self.failure)
                ready = sum(offered(len(own), level) for own in samples.values()) >= arrays * 2 ** (level - 1)
                if level not in priors and ready:  # line 9
                    priors[level] = self.choose(level, median_costs(samples, level, arrays))
                    for total in buffers[level]:
                        release(level, total)
            released = sum(tree.t * weight(level) for level, tree in enumerate(trees))
            yield sum(tree.sum() for tree in trees) / released if released else None
