"""A record that is not JSON is told by its first bytes, and by what its dead letter keeps of them."""

import gzip

import pytest

from shoal.models.framings import framing_of, framing_of_text

EVENT = b'{"customer":"ann","amount":1}'
AVRO, JSON = "Avro or Protobuf in the framing of a schema registry", "JSON behind the framing of a schema registry"
UTF16 = "JSON in UTF-16"
BINARY = "binary data"

FRAMED = {
    "Avro of a registry": (b"\x00\x00\x00\x00\x07\x06ann\x02", AVRO),
    "Avro of a registry, schema 200": (b"\x00\x00\x00\x00\xc8\x06ann\x02", AVRO),
    "Protobuf of a registry": (b"\x00\x00\x00\x00\x07\x00\x0a\x03ann", AVRO),
    "Avro of a registry, with a brace": (b"\x00\x00\x00\x00\x07\x02{\x02", AVRO),
    "JSON of a registry": (b"\x00\x00\x00\x00\x07" + EVENT, JSON),
    "JSON of a registry, schema 200": (b"\x00\x00\x00\x00\xc8" + EVENT, JSON),
    "JSON of a registry with longer ids": (b"\x00\x00\x00\x00\x00\x00\x00\x00\x07" + EVENT, JSON),
    "an Avro file": (b"Obj\x01\x04\x14avro.codec", "an Avro object container file"),
    "Glue": (b"\x03\x00" + bytes(range(128, 144)) + b"\x06ann", "a record in the framing of the AWS Glue"),
    "gzip": (gzip.compress(EVENT), "gzip"),
    "zstd": (b"\x28\xb5\x2f\xfd\x20\x1d" + EVENT, "zstd"),
    "Java": (b"\xac\xed\x00\x05sr\x00\x05Event", "a serialized Java object"),
    "UTF-16 with a mark": (EVENT.decode().encode("utf-16"), UTF16),
    "UTF-16, low end first": (EVENT.decode().encode("utf-16-le"), UTF16),
    "UTF-16, high end first": (EVENT.decode().encode("utf-16-be"), UTF16),
    "Latin-1": ('{"customer":"René"}'.encode("latin-1"), "text in another encoding"),
    "bare Avro": (b"\x06ann\x02", BINARY),
    "bare Protobuf": (b"\x0a\x03ann\x10\x01", BINARY),
    "XML": (b"<?xml version='1.0'?><event/>", "XML"),
}
TEXTS = (b"", b"hello", b'{"who":', "Grüße".encode(), b'{"x":NaN}', b"a\tb\r\n", b"[" * 300)


@pytest.mark.parametrize(("raw", "name"), FRAMED.values(), ids=FRAMED)
def test_a_framing_is_named_from_the_record_as_from_its_dead_letter(raw: bytes, name: str) -> None:
    found = framing_of(raw)
    assert found is not None
    assert found.name.startswith(name)
    assert framing_of_text(raw.decode("utf-8", "replace")) == found


@pytest.mark.parametrize("raw", TEXTS, ids=repr)
def test_text_that_is_not_json_has_no_framing(raw: bytes) -> None:
    assert framing_of(raw) is None
    assert framing_of_text(raw.decode("utf-8", "replace")) is None


def test_maps_are_told_apart_by_their_first_byte_which_a_dead_letter_has_lost() -> None:
    maps = {b"\x82\xa8customer\xa3ann\xa6amount\x01": "a MessagePack map", b"\xa1hcustomercann": "a CBOR map"}
    for raw, name in maps.items():
        found = framing_of(raw)
        assert found is not None
        assert found.name == name
        letter = framing_of_text(raw.decode("utf-8", "replace"))
        assert letter is not None
        assert letter.name.startswith(BINARY)
