"""Combinations of a test's parameters: all of them with full effort, a covering part of them in short runs.

`make test` and `make quick` run with an effort below 1 (tests/support/effort.py). `make test-long`, mutants and plain
pytest run every combination.
"""

import inspect
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import pytest
from _pytest.mark.structures import ParameterSet

from tests.support.effort import EFFORT

FULL = EFFORT >= 1  # whether this run tries every combination
Test = Callable[..., None]


def some(values: Sequence[Any], count: int) -> list[Any]:
    """All values with full effort, else `count` of them: the first, the last and values evenly spaced between."""
    if FULL or len(values) <= count:
        return list(values)
    return [values[round(at * (len(values) - 1) / max(1, count - 1))] for at in range(count)]


def combined(*axes: Sequence[Any], strength: int = 2) -> list[tuple[Any, ...]]:
    """Combinations of the axes' values, for a loop in one test. `strength` is that of `rows`."""
    chosen = rows([len(axis) for axis in axes], strength)
    return [tuple(axis[at] for axis, at in zip(axes, row, strict=True)) for row in chosen]


# ---------------------------------------------------------------- rows of indices


def rows(sizes: Sequence[int], strength: int = 2) -> list[tuple[int, ...]]:
    """Indices into axes of these sizes: all combinations with full effort, else a cover of this strength.

    Strength 1: every value of every axis occurs. Strength 2: every pair of values of two axes occurs.
    """
    return list(product(*map(range, sizes))) if FULL else cover(sizes, strength)


def cover(sizes: Sequence[int], strength: int = 2) -> list[tuple[int, ...]]:
    """Few combinations of indices, the same in each run, in which all values (1) or pairs of values (2) occur.

    Greedy: each row starts with the first missing pair; every other axis takes the value that adds most missing pairs.
    """
    if strength == 1 or len(sizes) < 2:
        return [tuple(at % size for size in sizes) for at in range(max(sizes))]
    missing = {
        ((i, x), (j, y)): None
        for i, j in combinations(range(len(sizes)), 2)
        for x, y in product(range(sizes[i]), range(sizes[j]))
    }
    used = [[0] * size for size in sizes]
    found = []
    while missing:
        row = dict(next(iter(missing)))
        for axis in (axis for axis in range(len(sizes)) if axis not in row):
            added = [sum(_pair((axis, x), held) in missing for held in row.items()) for x in range(sizes[axis])]
            most = [x for x in range(sizes[axis]) if added[x] == max(added)]
            row[axis] = min(most, key=used[axis].__getitem__)
        for one, other in combinations(sorted(row.items()), 2):
            missing.pop((one, other), None)
        for axis, x in row.items():
            used[axis][x] += 1
        found.append(tuple(row[axis] for axis in range(len(sizes))))
    return sorted(found)


def _pair(one: tuple[int, int], other: tuple[int, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    return (one, other) if one < other else (other, one)


# ---------------------------------------------------------------- parametrized tests


class Value(NamedTuple):
    """One value of a parametrized axis: its id, its values by parameter, and marks of its own."""

    label: str
    values: dict[str, Any]
    marks: tuple[Any, ...] = ()


def covered(*, strength: int = 2, keep: Iterable[str] = ()) -> Callable[[Test], Test]:
    """Parametrize a test with `rows` of the axes that the marks below this decorator name; ids stay those of pytest.

    `keep` has ids that every run tries, because a mutant names them.
    """

    def narrowed(test: Test) -> Test:
        axes, found = _axes(test), []
        chosen, kept = set(rows([len(axis) for axis in axes], strength)), set(keep)
        for row in product(*(range(len(axis)) for axis in axes)):
            value = _joined([axis[at] for axis, at in zip(axes, row, strict=True)])
            if row in chosen or value.label in kept:
                found.append(pytest.param(*value.values.values(), id=value.label, marks=value.marks))
            kept.discard(value.label)
        assert not kept, f"no case has the id {min(kept)}"
        names = [name for axis in axes for name in axis[0].values]
        test.pytestmark = [mark for mark in _marks(test) if mark.name != "parametrize"]  # type: ignore[attr-defined]
        marked: Test = pytest.mark.parametrize(names if len(names) > 1 else names[0], found)(test)
        return marked

    return narrowed


def in_a_loop(test: Test) -> Test:
    """Run all cases of a parametrized test as one item, to the end, and raise every failure with its case's id.

    For many cheap cases: collecting an item costs each pytest process about a millisecond. Stands above the marks that
    parametrize. Each case has a `monkeypatch` and a `tmp_path` of its own.
    """
    cases = [_joined(values) for values in product(*_axes(test))]
    assert not any(case.marks for case in cases), "a case in a loop has no marks of its own"

    def looped(*args: Any, **fixtures: Any) -> None:
        run_all(test, {case.label: case.values for case in cases}, *args, **fixtures)

    assert len({case.label for case in cases}) == len(cases)
    return without(looped, test, cases[0].values)


def run_all(test: Test, cases: dict[str, dict[str, Any]], *args: Any, **fixtures: Any) -> None:
    """Call a test with the values of each case, by the case's id, and raise the failures as one group.

    If an expectation failed, errors of other kinds are in the group's message only.
    """
    failed: list[BaseException] = []
    for number, (label, values) in enumerate(cases.items()):
        with pytest.MonkeyPatch.context() as monkeypatch:
            own: dict[str, Any] = {}
            if "monkeypatch" in fixtures:
                own["monkeypatch"] = monkeypatch
            if "tmp_path" in fixtures:
                own["tmp_path"] = fixtures["tmp_path"] / str(number)
                own["tmp_path"].mkdir()
            try:
                test(*args, **fixtures | own | values)
            except (Exception, pytest.fail.Exception) as error:
                error.add_note(f"in case {label}")
                failed.append(error)
    if failed:
        found = "\n".join(f"{error.__notes__[-1]}: {error}" for error in failed)
        expected = [error for error in failed if isinstance(error, AssertionError | pytest.fail.Exception)]
        raise BaseExceptionGroup(f"{len(failed)} of {len(cases)} cases fail\n{found}\n", expected or failed)


def without(looped: Test, test: Test, names: Container[str]) -> Test:
    """Give a loop the name, marks and fixtures of its test, except for the parameters that it loops over."""
    signature = inspect.signature(test)
    looped.__name__, looped.__qualname__, looped.__module__ = test.__name__, test.__qualname__, test.__module__
    looped.__doc__ = test.__doc__
    kept = [parameter for name, parameter in signature.parameters.items() if name not in names]
    looped.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    looped.pytestmark = [mark for mark in _marks(test) if mark.name != "parametrize"]  # type: ignore[attr-defined]
    return looped


def _marks(test: Test) -> list[pytest.Mark]:
    return list(getattr(test, "pytestmark", []))


def _axes(test: Test) -> list[list[Value]]:
    """Axes of a parametrized test; the mark next to the function comes first, as in pytest's ids."""
    marks = [mark for mark in _marks(test) if mark.name == "parametrize"]
    return [list(_axis(mark.args[0], list(mark.args[1]), mark.kwargs.get("ids"))) for mark in marks]


def _axis(names: str | Sequence[str], values: list[Any], ids: Any) -> Iterator[Value]:
    split = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    given = [None] * len(values) if ids is None or callable(ids) else list(ids)
    seen: set[str] = set()
    for at, value in enumerate(values):
        held = value.values if isinstance(value, ParameterSet) else value if len(split) > 1 else (value,)
        label = value.id if isinstance(value, ParameterSet) and value.id else given[at]
        if label is None:
            told = [_label(name, at, one, ids) for name, one in zip(split, held, strict=True)]
            label = "-".join(told)
        label = f"{label}" if label not in seen else f"{label}_{at}"
        seen.add(label)
        marks = tuple(value.marks) if isinstance(value, ParameterSet) else ()
        yield Value(label, dict(zip(split, held, strict=True)), marks)


def _label(name: str, at: int, value: Any, ids: Any) -> str:
    """A value's part of an id, as pytest makes it."""
    told = ids(value) if callable(ids) else None
    value = value if told is None else told
    if value is None or isinstance(value, str | int | float | bool):
        return str(value)
    named = getattr(value, "__name__", None)
    return named if isinstance(named, str) else f"{name}{at}"


def _joined(values: Sequence[Value]) -> Value:
    """Case made of one value of each axis: ids joined by dashes, values and marks of all."""
    held = {name: one for value in values for name, one in value.values.items()}
    return Value(
        "-".join(value.label for value in values), held, tuple(mark for value in values for mark in value.marks)
    )
