"""WindowSum: at every step the sum of the last W steps, from dyadic trees over blocks of W steps.

Guarantee    pure epsilon-DP for all releases together; steps may react to them (docs/proofs/decay.md)
Relation     values: two streams differ in what one unit contributed; who contributes, and when, is public
Unit         its changes, in one step or in many, are `width` grid steps in all
Sensitivity  L1, exact: width * (w + 1) over the nodes, w = ceil(log2 W); a step is in one node of each height
Noise        discrete Laplace, scale b = width * (w + 1) / epsilon, on every node; a function of key, block and node
Variance     of release t = c W + p, 0 < p <= W, in squared grid steps: v(b) times the number of nodes, which is
             w + 1 - tz(p) if W = 2**w (1 for p = W) and t > W; v(b) = 2p' / (1 - p')**2, p' = exp(-1 / b)
Source       Bolot, Fawaz, Muthukrishnan, Nikolov and Taft (2013), WindowSum; US patent application 2013/0212690 A1
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from shoal.mechanisms import check
from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.error_bars import COVERAGE, noise_quantile, noise_sd
from shoal.mechanisms.noise import laplace
from shoal.mechanisms.noise.keyed import MAX_INDEX
from shoal.mechanisms.sums.sums import Node, Noised
from shoal.mechanisms.sums.window import WindowSummer

BlockNode = tuple[int, int]  # of a node: block, and number in the block's tree, the root being 1


@dataclass(frozen=True)
class DyadicWindow(Noised):
    """All public parameters of such a sum. Nodes of a tree that begin after the block's end do not exist.

    >>> sums = DyadicWindow(1, Fraction(1), length=1024)
    >>> sums.scale, sums.nodes(1024), sums.nodes(1025), sums.nodes(1536)
    (Fraction(11, 1), 1, 11, 2)
    >>> round(sum(sums.variance(t) for t in range(2049, 3073)) / 1024)
    2419
    """

    mechanism: ClassVar[str] = "patent"

    length: int  # W

    def __post_init__(self) -> None:
        super().__post_init__()
        check.positive(length=self.length)
        check.below(MAX_INDEX >> 2, length=self.length)

    @cached_property
    def height(self) -> int:
        return (self.length - 1).bit_length()

    @property
    def l1_sensitivity(self) -> int:
        """The most that one unit changes all nodes together, in grid steps."""
        return self.width * (self.height + 1)

    @cached_property
    def scale(self) -> Fraction:
        return self.l1_sensitivity / Fraction(self.epsilon)

    def column(self, step: int) -> tuple[Node, ...]:
        block, leaf = divmod(step - 1, self.length)
        leaf += 1 << self.height
        return tuple(Node(block, leaf >> height, 1, self.scale) for height in range(self.height + 1))

    def places(self, t: int) -> Iterator[BlockNode]:
        """The nodes that release t adds up: whole ones from the left of its block, up to the end of the one before."""
        if t <= 0:
            return
        block, within = (t - 1) // self.length, (t - 1) % self.length + 1
        at = 0
        while at < within:
            height = (within - at).bit_length() - 1
            yield block, (1 << self.height | at) >> height
            at += 1 << height
        while block and at < self.length:
            height = (at & -at).bit_length() - 1
            yield block - 1, (1 << self.height | at) >> height
            at += 1 << height

    def nodes(self, t: int) -> int:
        return sum(1 for _ in self.places(t))

    def variance(self, t: int) -> float:
        return self.nodes(t) * laplace.variance(self.scale)

    def noise_sd(self, t: int) -> float:
        return noise_sd(((self.scale, self.nodes(t)),))

    def noise_quantile(self, t: int, coverage: float = COVERAGE) -> float:
        return noise_quantile(((self.scale, self.nodes(t)),), coverage)

    def summer(self, subkey: Subkeys) -> WindowSummer:
        return WindowSummer(self.length, DyadicNoise(self, subkey).at)

    def shape(self) -> str:
        return f"DyadicWindow({self._shared_shape}, length={self.length})"

    def counts(self) -> WindowSummer:
        return WindowSummer(self.length, lambda t: 0)


@dataclass(slots=True)
class DyadicNoise:
    """The noise of the releases; the draws of the last one are kept for the next, which shares most of them."""

    sums: DyadicWindow
    subkey: Subkeys = field(repr=False)  # block -> the subkey of its nodes
    _draws: dict[int, laplace.DiscreteLaplace] = field(default_factory=dict, init=False, repr=False)  # by block
    _kept: dict[BlockNode, int] = field(default_factory=dict, init=False, repr=False)

    def at(self, t: int) -> int:
        before, self._kept = self._kept, {}
        for node in self.sums.places(t):
            self._kept[node] = before[node] if node in before else self._draw(node)
        return sum(self._kept.values())

    def _draw(self, block_node: BlockNode) -> int:
        block, node = block_node
        if block not in self._draws:
            self._draws = {b: draws for b, draws in self._draws.items() if abs(b - block) == 1}
            self._draws[block] = laplace.DiscreteLaplace(self.sums.scale, self.subkey(block))
        return self._draws[block].draw(node)
