"""The mathematics: private statistics as pure objects, without I/O, clock or transport; README.md has the notation.

What `__all__` lists is the library (docs/reference/library.md): names that stay, imported when one is asked for. All
else in this package may change with any version.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.mechanisms.library.budget import Budget
    from shoal.mechanisms.library.counters import Counter, CounterStream, DecayedCounter, DecayedStream
    from shoal.mechanisms.library.keys import Key, KeyReused
    from shoal.mechanisms.library.numbers import GaussianMechanism, LaplaceMechanism, NumberStream
    from shoal.mechanisms.library.presence import KeySelection, PresenceStatistic
    from shoal.mechanisms.library.slots import FewUsersMean, SlotMean
    from shoal.mechanisms.library.statistics import DecayedStatistic, SharpMean
    from shoal.mechanisms.library.streams import UserStream
    from shoal.mechanisms.privacy.accounting import Concentrated, Loss, advanced
    from shoal.mechanisms.privacy.zcdp import largest_rho, smallest_epsilon
    from shoal.mechanisms.statistic import Estimate
    from shoal.mechanisms.sums.decays import Exponential, Forward, Polynomial, Undecayed, Window

__all__ = [
    "Budget",
    "Concentrated",
    "Counter",
    "CounterStream",
    "DecayedCounter",
    "DecayedStatistic",
    "DecayedStream",
    "Estimate",
    "Exponential",
    "FewUsersMean",
    "Forward",
    "GaussianMechanism",
    "Key",
    "KeyReused",
    "KeySelection",
    "LaplaceMechanism",
    "Loss",
    "NumberStream",
    "Polynomial",
    "PresenceStatistic",
    "SharpMean",
    "SlotMean",
    "Undecayed",
    "UserStream",
    "Window",
    "advanced",
    "largest_rho",
    "smallest_epsilon",
]

_MODULES = {  # below this package -> the stable names that are in it
    "library.budget": ("Budget",),
    "library.counters": ("Counter", "CounterStream", "DecayedCounter", "DecayedStream"),
    "library.keys": ("Key", "KeyReused"),
    "library.numbers": ("GaussianMechanism", "LaplaceMechanism", "NumberStream"),
    "library.presence": ("KeySelection", "PresenceStatistic"),
    "library.slots": ("FewUsersMean", "SlotMean"),
    "library.statistics": ("DecayedStatistic", "SharpMean"),
    "library.streams": ("UserStream",),
    "privacy.accounting": ("Concentrated", "Loss", "advanced"),
    "privacy.zcdp": ("largest_rho", "smallest_epsilon"),
    "statistic": ("Estimate",),
    "sums.decays": ("Exponential", "Forward", "Polynomial", "Undecayed", "Window"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A stable name, from the module that has it: what nobody asks for is not imported."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    """The stable names, and what a module has besides."""
    return sorted({*globals(), *__all__})
