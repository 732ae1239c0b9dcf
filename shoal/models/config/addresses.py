"""Addresses of brokers, HOST:PORT with commas between them, as `[kafka] brokers` has them."""

import re
from typing import NamedTuple

HOST = re.compile(r"[^\s:@/\[\],]+")
ADDRESS = re.compile(rf"(?:\[(?P<inner>[0-9A-Fa-f:.%]+)\]|(?P<host>{HOST.pattern})):(?P<port>[0-9]{{1,5}})")


class Address(NamedTuple):
    """A host by name or by number, and a port."""

    host: str
    port: int


def addresses_of(text: str) -> list[Address]:
    """Return the addresses in a text, in its order.

    >>> addresses_of("kafka-1:9092, [::1]:9093")
    [Address(host='kafka-1', port=9092), Address(host='::1', port=9093)]

    Raises:
        ValueError: one of them is not HOST:PORT; the text, which may hold a password, is not repeated.
    """
    return [_address(one.strip(), number) for number, one in enumerate(text.split(","), start=1)]


def _address(text: str, number: int) -> Address:
    found = ADDRESS.fullmatch(text)
    if found and 1 <= int(found["port"]) <= 65535:
        return Address(found["host"] or found["inner"], int(found["port"]))
    if HOST.fullmatch(text):
        raise ValueError(f"address {number} has no port; write {text}:9092 or the port of its listener")
    if "://" in text:
        raise ValueError(f"address {number} is a URL; write HOST:PORT, and set how to connect in security_protocol")
    if text.count(":") > 1:
        raise ValueError(f"address {number} is not HOST:PORT; write an IPv6 address in brackets, as in [::1]:9092")
    raise ValueError(f"address {number} is not HOST:PORT with a port from 1 to 65535, as in kafka-1:9092")
