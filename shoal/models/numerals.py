"""Numbers as other programs write them, and as JSON writes them."""

import re

JSON_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
NUMBER = re.compile(r"\s*([+-]?)0*(\d*)(?:\.(\d*))?([eE][+-]?\d+)?\s*", re.ASCII)


def json_number(text: str) -> str | None:
    """The number in a text as JSON writes it, or None if it is not a number.

    >>> [json_number(text) for text in ("5", "-.5", "+05.", " 0 ", "1E400", "0.50", ".", "", "5,0", "inf", "--5")]
    ['5', '-0.5', '5', '0', '1E400', '0.50', None, None, None, None, None]
    """
    if JSON_NUMBER.fullmatch(text):
        return text
    match = NUMBER.fullmatch(text)
    if match is None or not any(character in "0123456789" for character in text.lower().partition("e")[0]):
        return None
    sign, whole, part, exponent = match.groups("")
    return f"{'-' if sign == '-' else ''}{whole or 0}{'.' if part else ''}{part}{exponent}"
