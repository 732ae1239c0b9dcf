"""Predicates of an event: `value = "amount > 100"` is 1 where it holds and 0 where it does not.

Fields    numbers compare with <, <=, >, >=, == and !=; texts and booleans with == and !=; a field alone is a boolean.
          By what a field is compared with, a predicate says what it must hold: two fields side by side are numbers
Form      an event counts if every field that is named has what it must hold, else it is a dead letter: `no-value` where
          one is missing, `bad-value` where one is of another kind. So whether an event counts is decided by its form,
          never by a value: fields are looked at whether they decide the outcome or not
Numbers   a number of the predicate is read as one of an event is, integers exactly and others to the nearest double;
          comparing them rounds nothing, so that 0.1 == 0.1, on every machine
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq, ge, gt, itemgetter, le, lt, ne
from typing import Any

import orjson

from shoal.mechanisms.expressions import COMPARISONS, Call, Expression, Name, Number, Text, parse

SIGNS = frozenset("<>=!")  # of which one makes a text a predicate; without any it is the name of a field
KINDS: Mapping[str, tuple[type, ...]] = {"number": (int, float), "text": (str,), "boolean": (bool,)}
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = dict(zip(COMPARISONS, (lt, le, gt, ge, eq, ne), strict=True))
_BOOLEANS = {"true": True, "false": False}
Values = Sequence[Any]  # of the fields, in the order in which they are named
Test = Callable[[Values], bool]


@dataclass(frozen=True)
class Predicate:
    """A condition on the fields of an event."""

    tree: Expression
    kinds: tuple[tuple[str, str], ...]  # of each field that it names, in order: what it must hold

    @classmethod
    def of(cls, text: str) -> "Predicate":
        """The predicate that a text says.

        Raises:
            ValueError: it is no expression, or none that is true or false.
        """
        tree, tests = parse(text), _Tests()
        tests.condition(tree)
        return cls(tree, tuple(tests.kinds.items()))

    @property
    def text(self) -> str:
        """The one text of all that say the same condition."""
        return str(self.tree)

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(path for path, _ in self.kinds)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The fields that must hold numbers."""
        return tuple(path for path, kind in self.kinds if kind == "number")

    @property
    def test(self) -> Test:
        """The function that says of the values of all fields, each of its kind, whether it holds."""
        return _Tests().condition(self.tree)


def is_predicate(text: str) -> bool:
    """Whether a text is to be read as a predicate, and not as the name of a field.

    >>> is_predicate("amount > 100"), is_predicate("order and total")
    (True, False)
    """
    return not SIGNS.isdisjoint(text)


class _Tests:
    """Turns a tree into a test of values, and learns what its fields must hold."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}

    def condition(self, tree: Expression) -> Test:
        match tree:
            case Name(name) if name not in _BOOLEANS:
                value = self._field(name, "boolean")
                return lambda values: bool(value(values))
            case Call("and", (one, other)):
                first, second = self.condition(one), self.condition(other)
                return lambda values: first(values) and second(values)
            case Call("or", (one, other)):
                first, second = self.condition(one), self.condition(other)
                return lambda values: first(values) or second(values)
            case Call("not", (one,)):
                negated = self.condition(one)
                return lambda values: not negated(values)
            case Call(sign, (one, other)) if sign in COMPARISONS:
                return self._comparison(sign, one, other)
        raise ValueError(f"{tree} is neither true nor false; write a comparison, as in amount > 100")

    def _comparison(self, sign: str, one: Expression, other: Expression) -> Test:
        kinds = {kind for kind in map(_kind, (one, other)) if kind is not None}
        if not isinstance(one, Name) and not isinstance(other, Name) or len(kinds) > 1:
            raise ValueError(f"{one} {sign} {other} does not depend on an event; compare a field")
        kind = kinds.pop() if kinds else "number"
        if kind != "number" and sign not in ("==", "!="):
            raise ValueError(f"{one} {sign} {other} orders what is a {kind}; write == or !=")
        compare, left, right = _COMPARE[sign], self._value(one, kind), self._value(other, kind)
        return lambda values: compare(left(values), right(values))

    def _value(self, tree: Expression, kind: str) -> Callable[[Values], Any]:
        if isinstance(tree, Name) and tree.name not in _BOOLEANS:
            return self._field(tree.name, kind)
        constant = _constant(tree)
        return lambda values: constant

    def _field(self, path: str, kind: str) -> Callable[[Values], Any]:
        known = self.kinds.setdefault(path, kind)
        if known != kind:
            raise ValueError(f"field {path} would have to be a {known} and a {kind}; compare it with one of them")
        return itemgetter(list(self.kinds).index(path))


def _kind(tree: Expression) -> str | None:
    """What a constant is; None for a field."""
    match tree:
        case Name(name):
            return "boolean" if name in _BOOLEANS else None
        case Text():
            return "text"
        case Number() | Call("-", (Number(),)):
            return "number"
    raise ValueError(f"{tree} cannot be compared; compare fields, numbers, texts, true and false")


def _constant(tree: Expression) -> Any:
    match tree:
        case Call(_, (number,)):
            return -_constant(number)
        case Name(name):
            return _BOOLEANS[name]
        case Text(text):
            return text
    try:
        return orjson.loads(str(tree))
    except orjson.JSONDecodeError:
        raise ValueError(f"{tree} is beyond what a JSON number can carry") from None
