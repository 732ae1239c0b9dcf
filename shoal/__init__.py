"""shoal: live statistics about people, with user-level differential privacy under continual release.

    shoal.read          what was published: records, tables, a chart
    shoal.activations   what begins to count, and when
    shoal.Release       one release
    shoal.Releases      many, with what can be made of them

These are imported when they are first used: the command line starts without them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.agents.reading.releases import Releases as Releases
    from shoal.agents.reading.releases import activations as activations
    from shoal.agents.reading.releases import read as read
    from shoal.models.releases.record import Release as Release

__version__ = "0.1.0"

_EXPORTED = {
    "read": "shoal.agents.reading.releases",
    "activations": "shoal.agents.reading.releases",
    "Release": "shoal.models.releases.record",
    "Releases": "shoal.agents.reading.releases",
}


def __getattr__(name: str) -> Any:
    if name not in _EXPORTED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_EXPORTED[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTED})
