"""Licences of installed packages, as their metadata says."""

import re
from importlib.metadata import Distribution

# A licence of GNU that asks something of whoever passes a program on; "GPL-compatible" in a text is none.
COPYLEFT = re.compile(r"\b[AL]?GPL\b(?!-compatible)|\b[AL]?GPLv\d|\b[AL]?GPL-\d|GNU (Affero |Lesser |Library )?General")
PREFIX = "License :: "


def licences_of(package: Distribution) -> list[str]:
    """A package's licences: an SPDX expression if it states one, or its classifiers, or the first line of its text."""
    if expression := field(package, "License-Expression"):
        return expression
    stated = [each.removeprefix(PREFIX) for each in field(package, "Classifier") if each.startswith(PREFIX)]
    named = [each.rpartition(" :: ")[2] for each in stated if each != "OSI Approved"]
    return named or "".join(field(package, "License")).strip().splitlines()[:1]


def field(package: Distribution, name: str) -> list[str]:
    """The values of a field of a package's metadata."""
    return package.metadata.get_all(name) or []


def complaint(package: Distribution) -> str | None:
    """Why a package is not to be among those that everyone installs, or None."""
    licences = licences_of(package)
    if not licences:
        return f"{package.name} names no licence"
    copyleft = [licence for licence in licences if COPYLEFT.search(licence)]
    return f"{package.name} is under {', '.join(copyleft)}" if copyleft else None
