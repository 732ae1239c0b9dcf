"""Texts from data, such as names of groups and fields, in the form in which terminals, lists and logs show them.

A control character of a name would move the cursor of a terminal or begin a line that looks like one of shoal's, and an
invisible one could make two names look equal. Each is written as JSON writes it, so that a line of JSON keeps its
meaning.
"""

import unicodedata

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # controls, formats, lone surrogates, ends of lines and paragraphs


def printable(text: str) -> str:
    r"""Escape control and other invisible characters of a text, line ends included.

    >>> print(printable("BE"), printable("a\x1b[2J\n"), printable("\U000e0041"), printable("two words"))
    BE a\u001b[2J\u000a \udb40\udc41 two words
    """
    if text.isprintable():
        return text
    return "".join([_escaped(one) if unicodedata.category(one) in HIDDEN else one for one in text])


def printable_lines(text: str) -> str:
    r"""Escape control and other invisible characters within the lines of a text.

    >>> print(printable_lines("a\x07\nb"))
    a\u0007
    b
    """
    return "\n".join(map(printable, text.split("\n")))


def _escaped(one: str) -> str:
    """The character as one or two escapes of UTF-16 code units."""
    units = one.encode("utf-16-be", "surrogatepass")
    return "".join([f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)])
