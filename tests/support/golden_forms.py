"""Golden cases for tests that read releases: all of them with full effort, else a part in which every form occurs."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from tests.golden.configurations import CASES
from tests.golden.driver import FileOutcome, run_file
from tests.support.cover import FULL

# Together they have every form that a release or an activation of any case has; tests/agents/reading/test_records.py
# compares.
NAMES = (
    "window", "three coordinates", "hexagons", "few users with several values", "means of vectors", "predicates",
    "noise intervals of several releases", "what is withheld", "presence in windows",
    "presence in ranges that are chosen", "presence in bins", "means with a delta",
)  # fmt: skip
SHORT = [case for case in CASES if case.name in NAMES]
READ = CASES if FULL else SHORT

made_by = cache(run_file)


def forms(made: FileOutcome) -> Iterator[str]:
    """Forms of the releases and activations of a case: their keys, and the forms of what has several numbers."""
    for release in map(json.loads, made.releases):
        yield f"release {sorted(release)}"
        yield str({key: form(release.get(key)) for key in ("value", "noise_sd", "low", "high", "error", "withheld")})
        yield "with group" if release["group"] is not None else "without group"
    for activation in map(json.loads, made.activations):
        yield f"activation {sorted(activation)}"


def form(value: Any) -> Any:
    """A value with its numbers left out, and one element for each list and for quantiles."""
    if isinstance(value, dict):
        return {key: form([*each.values()] if key == "quantiles" else each) for key, each in sorted(value.items())}
    if isinstance(value, list):
        return [form(each) for each in value[:1]]
    return None if value is None else "number" if isinstance(value, int | float) else "text"
