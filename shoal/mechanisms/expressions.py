"""Expressions of a configuration: numbers, texts, names, comparisons, and, or, not, arithmetic and functions.

`parse` makes a tree of leaves and calls by the grammar below, and knows nothing of what they mean; whoever reads the
tree says which calls there may be. No part of a text is ever run as Python. What is too long or too deep is refused, so
that a tree is small enough for any recursion.

Binding   or, and, not, one comparison (no chains), + and -, * and /, - before a value, ^ (to the right); f(x)
Names     letters, digits and _, with dots between; any others between backticks: `total-amount`
Texts     between ' or ", without escapes
Numbers   as in JSON: 12, 0.5, 1e3
"""

import re
from dataclasses import dataclass
from typing import NoReturn

MOST_CHARACTERS = 1000
MOST_DEPTH = 20
MOST_WORDS = 200
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_NOT, _COMPARED, _MINUS = 3, 4, 7
_BINDING = {"or": 1, "and": 2, **dict.fromkeys(COMPARISONS, _COMPARED), "+": 5, "-": 5, "*": 6, "/": 6, "^": 8}
_CHAINED = ("or", "and", "+", "*")
_WORD = re.compile(
    r"""\s*(?:(?P<number>(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)|(?P<text>'[^']*'|"[^"]*")|`(?P<quoted>[^`]+)`
    |(?P<name>[^\W\d]\w*(?:\.\w+)*)|(?P<sign><=|>=|==|!=|[-<>+*/^(),]))\s*""",
    re.ASCII | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is written."""

    written: str

    def __str__(self) -> str:
        return self.written


@dataclass(frozen=True, slots=True)
class Text:
    """A literal between ' or ", which cannot hold the quote that ends it."""

    text: str

    def __str__(self) -> str:
        return f'"{self.text}"' if "'" in self.text else f"'{self.text}'"


@dataclass(frozen=True, slots=True)
class Name:
    """A field, or a variable."""

    name: str

    def __str__(self) -> str:
        word = _WORD.fullmatch(self.name)
        is_plain = word is not None and word["name"] == self.name and self.name not in ("and", "or", "not")
        return self.name if is_plain else f"`{self.name}`"


@dataclass(frozen=True, slots=True)
class Call:
    """An operator, or a function, and what it is applied to."""

    of: str
    given: tuple["Expression", ...]

    def __str__(self) -> str:
        if self.of not in _BINDING and self.of != "not":
            return f"{self.of}({', '.join(map(str, self.given))})"
        parts = [f"({part})" if isinstance(part, Call) else str(part) for part in self.given]
        first = self.given[0]
        if self.of in _CHAINED and isinstance(first, Call) and first.of == self.of and len(first.given) == 2:
            parts[0] = str(first)
        return f"{self.of} {parts[0]}" if len(parts) == 1 else f"{parts[0]} {self.of} {parts[1]}"


Expression = Number | Text | Name | Call


def parse(text: str) -> Expression:
    """The tree of a text; as a text again it has a parenthesis wherever its structure needs one.

    >>> print(parse("not a.b>1 and c == 'x' or 2 - -3 * i ^ 2 < 1"))
    ((not (a.b > 1)) and (c == 'x')) or ((2 - ((- 3) * (i ^ 2))) < 1)

    Raises:
        ValueError: it is no expression; the message says where, and shows none of the text but the word there.
    """
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"has {len(text)} characters; an expression has at most {MOST_CHARACTERS}")
    return _Parser(text.rstrip()).parse()


class _Parser:
    """Goes through the words of a text, by the strength with which operators bind."""

    def __init__(self, text: str) -> None:
        self._words: list[tuple[str, str, int]] = []  # kind, word and position, from 1
        at = 0
        while at < len(text):
            match = _WORD.match(text, at)
            if match is None or match.lastgroup is None:
                hint = "; compare with ==" if text[at:].lstrip().startswith("=") else ""
                raise ValueError(f"character {at + 1}: nothing can begin with {text[at:].lstrip()[:1]!r} here{hint}")
            self._words.append((match.lastgroup, match[match.lastgroup], match.start(match.lastgroup) + 1))
            at = match.end()
        if len(self._words) > MOST_WORDS:
            raise ValueError(f"has {len(self._words)} words and signs; an expression has at most {MOST_WORDS}")
        self._words.append(("end", "", len(text) + 1))
        self._at = self._depth = 0

    def parse(self) -> Expression:
        tree = self._expression(0)
        if self._words[self._at][0] != "end":
            self._refuse("an operator")
        return tree

    def _refuse(self, wanted: str) -> NoReturn:
        kind, word, position = self._words[self._at]
        there = "the end" if kind == "end" else repr(word)
        raise ValueError(f"character {position}: {wanted} is missing before {there}")

    def _takes(self, *words: str) -> str | None:
        """Pass the next word if it is one of these."""
        kind, word, _ = self._words[self._at]
        if kind not in ("sign", "name") or word not in words:
            return None
        self._at += 1
        return word

    def _expression(self, least: int) -> Expression:
        """What operators that bind at least so strongly hold together."""
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise ValueError(f"is nested too deeply: an expression has at most {MOST_DEPTH} levels")
        left, compares = self._operand(), False
        while (sign := self._takes(*(sign for sign, binding in _BINDING.items() if binding >= least))) is not None:
            if sign in COMPARISONS and compares:
                raise ValueError("compares in a chain; write a < b and b < c")
            compares |= sign in COMPARISONS
            left = Call(sign, (left, self._expression(_BINDING[sign] + (sign != "^"))))
        self._depth -= 1
        return left

    def _operand(self) -> Expression:
        if self._takes("not"):
            return Call("not", (self._expression(_NOT),))
        if self._takes("-"):
            return Call("-", (self._expression(_MINUS),))
        if self._takes("("):
            return self._closed(self._expression(0))
        kind, word, _ = self._words[self._at]
        if kind not in ("number", "text", "name", "quoted") or (kind == "name" and word in _BINDING):
            self._refuse("a value")
        self._at += 1
        match kind:
            case "number":
                return Number(word)
            case "text":
                return Text(word[1:-1])
            case "name" if self._takes("("):
                return self._closed(Call(word, self._arguments()))
            case _:
                return Name(word)

    def _arguments(self) -> tuple[Expression, ...]:
        given = [self._expression(0)]
        while self._takes(","):
            given.append(self._expression(0))
        return tuple(given)

    def _closed(self, inner: Expression) -> Expression:
        if not self._takes(")"):
            self._refuse("an operator or )")
        return inner
