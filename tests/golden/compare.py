"""What differs between the stored answers and those of this version, in words."""

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

from tests.golden import commands, store
from tests.golden.case import Case
from tests.golden.configurations import CASES
from tests.golden.corpus import IN_FULL, KINDS, digest, outcome_of
from tests.golden.difference import excerpts, first_difference
from tests.golden.driver import TWIN, Lane, parameters

REMEDY = "if it must move, see 'Bytes are a contract' in CONTRIBUTING.md"
Difference = str | None


def parameters_difference(case: Case) -> Difference:
    """Of the texts whose digests name the noise."""
    return _texts(case, "parameters", store.read("parameters.json").get(case.name), parameters(case))


def counters_difference(case: Case, lane: Lane = TWIN) -> Difference:
    """Of the counters of the file run."""
    return _texts(case, "counters", _summary(case).get("counters"), outcome_of(case, lane).counters)


def replay_difference(case: Case, lane: Lane = TWIN) -> Difference:
    """Of what a replay says."""
    return _texts(case, "replay", _summary(case).get("replay"), outcome_of(case, lane).verdict)


def _summary(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = store.read("summaries.json").get(case.name, {})
    return found


def digest_difference(case: Case, kind: str, lane: Lane = TWIN) -> Difference:
    """Of everything of a kind."""
    return _digests(case, kind, digest(outcome_of(case, lane).entries[kind]))


def lines_difference(case: Case, kind: str, lane: Lane = TWIN) -> Difference:
    """Of what is stored as it is: the first line that differs, and where in it."""
    path = store.lines_of(case, kind)
    stored = path.read_text("utf-8").splitlines() if path.exists() else []
    found = store.as_lines(outcome_of(case, lane).entries[kind])
    for number, (one, other) in enumerate(zip_longest(stored, found), 1):
        if one != other:
            return f"{case.name}: {kind}: line {number} of {path.name} differs\n{excerpts(one, other)}"
    return None


def command_difference(name: str) -> Difference:
    """Of what a command prints."""
    try:
        stored = store.read(f"cli/{name}.json")
    except FileNotFoundError:
        return f"{name}: nothing is stored; run `make golden`"
    told = first_difference(stored, commands.answers()[name])
    return None if told is None else f"{name}: {told}; {REMEDY}"


def differences(lane: Lane = TWIN) -> Iterator[str]:
    """All there are."""
    checks: list[tuple[Callable[..., Difference], tuple[Any, ...]]] = []
    for case in CASES:
        checks += [(parameters_difference, (case,)), *checks_of(case, lane)]
    checks += [(command_difference, (name,)) for name in commands.NAMES]
    yield from (told for check, arguments in checks if (told := check(*arguments)) is not None)


def checks_of(case: Case, lane: Lane) -> Iterator[tuple[Callable[..., Difference], tuple[Any, ...]]]:
    """All that a lane could make otherwise."""
    yield from ((one, (case, lane)) for one in (counters_difference, replay_difference))
    yield from ((digest_difference, (case, kind, lane)) for kind in KINDS)
    yield from ((lines_difference, (case, kind, lane)) for kind in IN_FULL if case.in_full)


def _digests(case: Case, kind: str, found: str) -> Difference:
    stored = store.read("digests.json").get(case.name, {}).get(kind, "nothing")
    if stored == found:
        return None
    return f"{case.name}: {kind} moved: stored is {_told(stored)}, found {_told(found)}; {REMEDY}"


def _told(digest: str) -> str:
    count, _, sha = digest.partition(" ")
    return f"{count} entries, {sha[:12]}" if sha else digest


def _texts(case: Case, kind: str, stored: Any, found: Any) -> Difference:
    told = first_difference(stored, found)
    return None if told is None else f"{case.name}: {kind}: {told}; {REMEDY}"
