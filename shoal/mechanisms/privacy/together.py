"""Together: what k units of a ledger's lose in all mechanisms, each counted in the form that is best for it.

Guarantee    every bound holds if the losses that go in are upper bounds; every rounding is upwards
Relation     any; two streams differ in the values of k units of the ledger's, whosever they are
Pure         n epsilon, where the k units have a part in n of the mechanism's
Approximate  n epsilon, delta (1 + e**epsilon + ... + e**((n - 1) epsilon))
Gaussian     n**2 rho; the rhos of all mechanisms add up, and are converted once
Mechanisms   add up: epsilon and delta of those without Gaussian noise, or epsilon**2 / 2 of a pure one as its rho
Proof        docs/proofs/accounting.md
Source       Dwork and Roth (2014), section 2.3; Bun and Steinke (2016), Propositions 1.4 and 1.9; Canonne, Kamath and
             Steinke (2020), Corollary 13. Distances between streams as in Maddi, "Differential privacy definitions for
             streaming data": d_E <= k d_U
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

from shoal.mechanisms import check
from shoal.mechanisms.privacy.accounting import NOTHING, Concentrated, Loss

_SURE = Fraction(1)  # a delta that promises nothing
_NO_RHO = Concentrated(Fraction(0))


@dataclass(frozen=True, slots=True)
class Part:
    """One mechanism, and how often one unit of the ledger's has a part in it."""

    loss: Loss  # of one of the mechanism's units
    touched: int = 1  # of the mechanism's units, by one of the ledger's
    apart: bool = False  # each of the mechanism's units has releases of its own, which only others' units share
    rho: Fraction | None = None  # of one of the mechanism's units, where its noise is Gaussian

    def __post_init__(self) -> None:
        check.positive(touched=self.touched)

    def of_group(self, count: int) -> Loss:
        """The loss of `count` units of the ledger's by (epsilon, delta) alone.

        >>> half = Loss(Fraction(1, 2))
        >>> Part(half, touched=3).of_group(4) == Loss(Fraction(6))
        True
        """
        if not self.apart:
            return self.loss.of_group(count * self.touched)
        group = self.loss.of_group(count)
        return Loss(self.touched * group.epsilon, min(self.touched * group.delta, _SURE))

    def concentrated(self, count: int) -> Concentrated | None:
        """The same in zCDP, n**2 rho; None of what has a delta and no rho."""
        if self.rho is not None:
            return Concentrated(self.rho).of_group(count * self.touched)
        return None if self.loss.delta else Concentrated.of_pure(self.of_group(count).epsilon)


class Bound(NamedTuple):
    """A loss that is not exceeded, and the form in which it was counted."""

    loss: Loss
    by: Literal["pure", "approximate", "zcdp"]


def bounds(parts: Sequence[Part], count: int) -> tuple[Bound, ...]:
    """The bounds on what `count` units lose in all mechanisms together, of which none is below another.

    The first one has the delta to which those of groups add up, and so is at most what (epsilon, delta) alone would
    give. Where noise is Gaussian, a second one has the deltas of one unit: there delta need not grow with a group.

    >>> bounds([Part(Loss(Fraction(1)))], 4)[0].loss == Loss(Fraction(4))
    True
    >>> from shoal.mechanisms.privacy.zcdp import largest_rho
    >>> one = Loss(Fraction(1), Fraction(1, 10**6))
    >>> window = Part(one, rho=largest_rho(one.epsilon, one.delta))
    >>> [(round(float(loss.epsilon), 3), float(loss.delta)) for loss, _ in bounds([window], 4)]
    [(3.866, 3.1192874850577366e-05), (4.537, 1e-06)]
    """
    check.positive(count=count)
    plain = sum((part.of_group(count) for part in parts), NOTHING)
    gaussian = [part for part in parts if part.rho is not None]
    if not gaussian:
        return (Bound(plain, "approximate" if plain.delta else "pure"),)
    grown = sum((part.of_group(count).delta for part in gaussian), Fraction(0))
    own = sum((part.loss.delta for part in gaussian), Fraction(0))
    converted = [_converted(parts, count, delta) for delta in dict.fromkeys((grown, own)) if delta < _SURE]
    best = [Bound(loss, "zcdp") for loss in converted]
    if plain.delta < _SURE and best[0].loss.epsilon >= plain.epsilon:
        best[0] = Bound(plain, "approximate")
    return tuple(best) or (Bound(plain, "approximate"),)


def _converted(parts: Sequence[Part], count: int, delta: Fraction) -> Loss:
    """The loss where everything Gaussian is converted at this delta, and what is pure too if that is less."""
    return min(_ways(parts, count, delta), key=lambda loss: loss.epsilon)


def _ways(parts: Sequence[Part], count: int, delta: Fraction) -> Iterator[Loss]:
    for with_pure in (False, True):
        spent, rest = _NO_RHO, NOTHING
        for part in parts:
            rho = part.concentrated(count)
            if rho is None or (part.rho is None and not with_pure):
                rest += part.of_group(count)
            else:
                spent += rho
        yield spent.loss(delta) + rest
