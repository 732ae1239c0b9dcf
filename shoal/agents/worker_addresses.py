"""Where workers are asked: HOST:PORT as people give it, and the addresses that such a name stands for.

A name that stands for several addresses, as that of a headless Kubernetes service, stands for all of their workers.
"""

import socket
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from shoal.models.config.addresses import Address
from shoal.models.errors import ConfigError


class Place(NamedTuple):
    """One worker: what to call it, its address and its port."""

    name: str
    host: str
    port: int


def addresses_of(names: str) -> list[Address]:
    """The addresses in `HOST:PORT,HOST:PORT`.

    Raises:
        ConfigError: one of the names is none.
    """
    return [_address(name) for name in filter(None, map(str.strip, names.split(",")))]


def _address(name: str) -> Address:
    try:
        parts = urlsplit(name if "//" in name else f"//{name}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or port is None:
        raise ConfigError(f'--workers: "{name}" is not HOST:PORT; the port is that of [web]')
    return Address(host, port)


def places_of(address: Address, found: Sequence[Any]) -> list[Place]:
    """The workers at an address, from what `getaddrinfo` found for it; none found: the address itself."""
    # Where there are addresses of both families, the same workers have both.
    wanted = socket.AF_INET if any(family == socket.AF_INET for family, *_ in found) else socket.AF_INET6
    hosts = list(dict.fromkeys(str(place[0]) for family, _, _, _, place in found if family == wanted))
    if len(hosts) < 2:
        return [Place(_name(*address), hosts[0] if hosts else address.host, address.port)]
    return [Place(_name(host, address.port), host, address.port) for host in hosts]


def _name(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
