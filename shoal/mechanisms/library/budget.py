"""A budget that is charged in one process."""

from shoal.mechanisms.library.numbers import EXACT, exact
from shoal.mechanisms.privacy.accounting import NOTHING, Loss


class Budget:
    """The most that one unit may lose in this process, and what is charged to it: by basic composition.

    Shapes   `charge(loss)` returns what is left; `charged` and `left` are of type Loss
    Units    epsilon and delta, of the unit that all losses are of: add up losses of one unit alone
    Raises   TypeError: a float; ValueError: a loss that does not fit, and is not charged
    Source   Dwork and Roth (2014), section 3.5.1; docs/proofs/accounting.md

    It is forgotten with the process: what must survive is charged to a ledger, as `shoal worker` and `shoal run` do.

    >>> from fractions import Fraction
    >>> from shoal.mechanisms import Budget, Counter
    >>> budget, visits = Budget(epsilon=2), Counter(epsilon=Fraction(3, 2))
    >>> budget.charge(visits.loss)
    Loss(epsilon=Fraction(1, 2), delta=Fraction(0, 1))
    >>> budget.charge(visits.loss)
    Traceback (most recent call last):
    ValueError: the loss of epsilon 3/2 and delta 0 is more than the epsilon 1/2 and delta 0 that are left
    """

    def __init__(self, *, epsilon: EXACT, delta: EXACT = 0) -> None:
        self._whole = Loss(exact(epsilon=epsilon), exact(delta=delta))
        self.charged = NOTHING

    @property
    def left(self) -> Loss:
        """What is not charged yet."""
        return Loss(self._whole.epsilon - self.charged.epsilon, self._whole.delta - self.charged.delta)

    def charge(self, loss: Loss) -> Loss:
        """Charge a loss before anything is released; what is left then."""
        left = self.left
        if loss.epsilon > left.epsilon or loss.delta > left.delta:
            raise ValueError(
                f"the loss of epsilon {loss.epsilon} and delta {loss.delta} is more than the epsilon {left.epsilon} "
                f"and delta {left.delta} that are left"
            )
        self.charged += loss
        return self.left
