"""Parts narrowed to the classes that a form of metric has."""

from typing import TypeVar, overload

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


@overload
def expect(part: object, first: type[A], /) -> A: ...
@overload
def expect(part: object, first: type[A], second: type[B], /) -> A | B: ...
@overload
def expect(part: object, first: type[A], second: type[B], third: type[C], /) -> A | B | C: ...
def expect(part: object, *classes: type) -> object:
    """Return `part`, narrowed to one of `classes`.

    >>> expect(1, int), expect(1, str, int)
    (1, 1)
    >>> expect(1, str)
    Traceback (most recent call last):
    TypeError: a metric of this form has str, not 1

    Raises:
        TypeError: `part` is not an instance of any of them.
    """
    if not isinstance(part, classes):
        raise TypeError(f"a metric of this form has {' or '.join(each.__name__ for each in classes)}, not {part!r}")
    return part
