"""What differs between the stored answers and those of this version, in words."""

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

from tests.golden import commands, store
from tests.golden.configurations import CASES, Case
from tests.golden.corpus import IN_FULL, KINDS, continued, digest, outcome_of
from tests.golden.driver import parameters

REMEDY = "if it must move, see 'Bytes are a contract' in CONTRIBUTING.md"
AROUND = 60  # characters shown on either side of a difference
Difference = str | None


def parameters_difference(case: Case) -> Difference:
    """Of the texts whose digests name the noise."""
    return _texts(case, "parameters", store.read("parameters.json").get(case.name), parameters(case))


def counters_difference(case: Case) -> Difference:
    """Of the counters of the file run."""
    return _texts(case, "counters", _summary(case).get("counters"), outcome_of(case).counters)


def replay_difference(case: Case) -> Difference:
    """Of what a replay says."""
    return _texts(case, "replay", _summary(case).get("replay"), outcome_of(case).verdict)


def _summary(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = store.read("summaries.json").get(case.name, {})
    return found


def digest_difference(case: Case, kind: str) -> Difference:
    """Of everything of a kind."""
    return _digests(case, kind, digest(outcome_of(case).entries[kind]))


def continued_difference(case: Case, version: str) -> Difference:
    """Of what comes after a state that a version has left behind."""
    return _digests(case, f"continued from {version}", digest(continued(case, version)))


def lines_difference(case: Case, kind: str) -> Difference:
    """Of what is stored as it is: the first line that differs, and where in it."""
    path = store.lines_of(case, kind)
    stored = path.read_text("utf-8").splitlines() if path.exists() else []
    found = store.as_lines(outcome_of(case).entries[kind])
    for number, (one, other) in enumerate(zip_longest(stored, found), 1):
        if one != other:
            return f"{case.name}: {kind}: line {number} of {path.name} differs\n{_first_difference(one, other)}"
    return None


def command_difference(name: str) -> Difference:
    """Of what a command prints."""
    try:
        stored = store.read(f"cli/{name}.json")
    except FileNotFoundError:
        return f"{name}: nothing is stored; run `make golden`"
    told = commands.first_difference(stored, commands.answers()[name])
    return None if told is None else f"{name}: {told}; {REMEDY}"


def differences() -> Iterator[str]:
    """All there are."""
    checks: list[tuple[Callable[..., Difference], tuple[Any, ...]]] = []
    for case in CASES:
        checks += [(one, (case,)) for one in (parameters_difference, counters_difference, replay_difference)]
        checks += [(digest_difference, (case, kind)) for kind in KINDS]
        checks += [(lines_difference, (case, kind)) for kind in IN_FULL if case.in_full]
        checks += [
            (continued_difference, (case, version))
            for version in store.versions()
            if store.has_state(version, case.name)
        ]
    checks += [(command_difference, (name,)) for name in commands.NAMES]
    yield from (told for check, arguments in checks if (told := check(*arguments)) is not None)


def _digests(case: Case, kind: str, found: str) -> Difference:
    stored = store.read("digests.json").get(case.name, {}).get(kind, "nothing")
    if stored == found:
        return None
    return f"{case.name}: {kind} moved: stored is {_told(stored)}, found {_told(found)}; {REMEDY}"


def _told(digest: str) -> str:
    count, _, sha = digest.partition(" ")
    return f"{count} entries, {sha[:12]}" if sha else digest


def _texts(case: Case, kind: str, stored: Any, found: Any) -> Difference:
    told = commands.first_difference(stored, found)
    return None if told is None else f"{case.name}: {kind}: {told}; {REMEDY}"


def _first_difference(one: str | None, other: str | None) -> str:
    if one is None or other is None:
        return f"  stored {_cut(one, 0)}\n  found  {_cut(other, 0)}"
    place = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"  stored {_cut(one, place)}\n  found  {_cut(other, place)}"


def _cut(line: str | None, place: int) -> str:
    if line is None:
        return "(no such line)"
    begin, end = max(0, place - AROUND), place + AROUND
    return f"{'…' * (begin > 0)}{line[begin:end]}{'…' * (end < len(line))}"
