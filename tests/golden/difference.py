"""Where two answers differ, in words that can be read."""

import math
from typing import Any

AROUND = 60  # characters shown on either side of a difference


def first_difference(stored: Any, found: Any, where: str = "") -> str | None:
    """Of two JSON values: keys and their order count, and fractions to one part in a million."""
    if isinstance(stored, dict) and isinstance(found, dict):
        if list(stored) != list(found):
            return f"{where or 'the answer'}: keys {', '.join(stored)} are stored, {', '.join(found)} found"
        pairs = [(f"{where}.{key}", stored[key], found[key]) for key in stored]
    elif isinstance(stored, list) and isinstance(found, list):
        if len(stored) != len(found):
            return f"{where}: {len(stored)} entries are stored, {len(found)} found"
        pairs = [(f"{where}[{at}]", *both) for at, both in enumerate(zip(stored, found, strict=True))]
    elif isinstance(stored, str) and isinstance(found, str):
        return None if stored == found else f"{where}:\n{excerpts(stored, found)}\n"
    else:
        return None if _same(stored, found) else f"{where}: {stored!r} is stored, {found!r} found"
    return next((told for place, one, other in pairs if (told := first_difference(one, other, place))), None)


def _same(stored: Any, found: Any) -> bool:
    if isinstance(stored, float) and isinstance(found, float):
        return math.isclose(stored, found, rel_tol=1e-6)
    return type(stored) is type(found) and bool(stored == found)


def excerpts(stored: str | None, found: str | None) -> str:
    """Of two lines, one below the other, the part in which they differ first; None where there is no such line."""
    one, other = stored or "", found or ""
    pairs = zip(one, other, strict=False)
    place = next((at for at, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))
    return f"  stored {_cut(stored, place)}\n  found  {_cut(found, place)}"


def _cut(line: str | None, place: int) -> str:
    if line is None:
        return "(no such line)"
    begin, end = max(0, place - AROUND), place + AROUND
    return f"{'…' * (begin > 0)}{line[begin:end]}{'…' * (end < len(line))}"
