"""Framings: what the first bytes of a record say about a record that is not JSON.

Bound refuses such a record as `not-json`, whatever it is. The framing is an explanation for people: `shoal check` reads
it from records of a source topic, `shoal dead-letters` from the text of a dead letter. In that text a replacement
character stands for each byte that is not UTF-8, so prefixes are compared as text.
"""

from typing import NamedTuple

import orjson

LOOKED_AT = 32  # characters at the beginning, more than any framing has
LOST = "\ufffd"  # stands for a byte that is not UTF-8

REMOVE = "take the framing off before the topic, or have the producer send plain JSON"
UNPACK = "switch this compression off in the producer, and use Kafka's own compression.type instead"
AS_JSON = "have the producer send JSON, or a stream job translate the topic"
AS_UTF8 = "have the producer write UTF-8"


class Framing(NamedTuple):
    """What a record is instead of JSON, and what to do about it."""

    name: str
    remedy: str


_PREFIXES = (
    (b"Obj\x01", Framing("an Avro object container file", AS_JSON)),
    (b"\x03\x00", Framing("a record in the framing of the AWS Glue schema registry", REMOVE)),
    (b"\x03\x05", Framing("a record in the framing of the AWS Glue schema registry", REMOVE)),
    (b"\x1f\x8b", Framing("gzip", UNPACK)),
    (b"\x28\xb5\x2f\xfd", Framing("zstd", UNPACK)),
    (b"\x04\x22\x4d\x18", Framing("lz4", UNPACK)),
    (b"\xff\x06\x00\x00sNaPpY", Framing("snappy", UNPACK)),
    (b"\x82SNAPPY\x00", Framing("snappy", UNPACK)),
    (b"\xac\xed\x00\x05", Framing("a serialized Java object", AS_JSON)),
    (b"PAR1", Framing("a Parquet file", AS_JSON)),
    (b"\xff\xfe{\x00", Framing("JSON in UTF-16", AS_UTF8)),
    (b"\xfe\xff\x00{", Framing("JSON in UTF-16", AS_UTF8)),
    (b"{\x00", Framing("JSON in UTF-16", AS_UTF8)),
    (b"\x00{\x00", Framing("JSON in UTF-16", AS_UTF8)),
    (b"<?xml", Framing("XML", AS_JSON)),
)
_TEXTS = tuple((prefix.decode("utf-8", "replace"), framing) for prefix, framing in _PREFIXES)


_OF_REGISTRY = Framing("Avro or Protobuf in the framing of a schema registry (byte 0, then a schema id)", AS_JSON)
_JSON_OF_REGISTRY = Framing("JSON behind the framing of a schema registry (5 bytes: 0, then a schema id)", REMOVE)
_OTHER_TEXT = Framing("text in another encoding than UTF-8", AS_UTF8)
_UNKNOWN = Framing("binary data, such as Avro or Protobuf without a framing", AS_JSON)


def framing_of(raw: bytes) -> Framing | None:
    r"""The framing of a record that is not JSON; None if the record is text in UTF-8, such as broken JSON.

    >>> framing_of(b"\x82\xa3who\xa3ann").name, framing_of(b'{"amount":')
    ('a MessagePack map', None)
    """
    found = framing_of_text(raw.decode("utf-8", "replace"))
    return _of_map(raw[0]) or found if found is _UNKNOWN else found


def framing_of_text(text: str) -> Framing | None:
    r"""The framing of a record from the text of its dead letter; there maps of MessagePack and CBOR look alike.

    >>> framing_of_text('\0\0\0\0\7{"amount":1}').name
    'JSON behind the framing of a schema registry (5 bytes: 0, then a schema id)'
    >>> framing_of_text("\x1f\ufffd\x08").name, framing_of_text("hello")
    ('gzip', None)
    """
    for prefix, framing in _TEXTS:
        if text.startswith(prefix):
            return framing
    beginning = text[:LOOKED_AT]
    if beginning[:1] == "\0":
        return _JSON_OF_REGISTRY if _has_json(text, beginning.find("{")) else _OF_REGISTRY
    if beginning.lstrip()[:1] in ("{", "["):
        return _OTHER_TEXT if LOST in text else None
    return _UNKNOWN if any(_is_binary(sign) for sign in beginning) else None


def _has_json(text: str, start: int) -> bool:
    """Whether a JSON value begins at `start` and goes on to the end of the text."""
    try:
        orjson.loads(text[start:].encode("utf-8", "replace"))
    except orjson.JSONDecodeError:
        return False
    return start > 0


def _is_binary(sign: str) -> bool:
    return sign == LOST or (sign < " " and sign not in "\t\n\r")


def _of_map(first: int) -> Framing | None:
    """The framing of binary data by its first byte, if that begins a map of MessagePack or CBOR."""
    if 0x81 <= first <= 0x8F or first in (0xDE, 0xDF):
        return Framing("a MessagePack map", AS_JSON)
    if 0xA1 <= first <= 0xB7 or first == 0xBF:
        return Framing("a CBOR map", AS_JSON)
    return None
