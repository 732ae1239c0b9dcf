"""Names of workers: HOST:PORT, and all addresses that such a name stands for."""

import socket
from typing import Any

import pytest

from shoal.agents.worker_addresses import addresses_of, places_of
from shoal.models.config.addresses import Address
from shoal.models.errors import ConfigError


@pytest.mark.parametrize("names", ["nowhere", "host:", ":80", "host:port", "http://[::1"])
def test_a_name_that_is_none_is_refused(names: str) -> None:
    with pytest.raises(ConfigError, match="is not HOST:PORT"):
        addresses_of(names)


def test_names_are_hosts_and_ports() -> None:
    assert addresses_of("a:1, http://b:2,") == [Address("a", 1), Address("b", 2)]


def test_a_name_stands_for_all_its_addresses() -> None:
    four: list[Any] = [(socket.AF_INET, 1, 6, "", (f"127.0.0.{last}", 9100)) for last in (2, 3, 3)]
    six: list[Any] = [(socket.AF_INET6, 1, 6, "", (f"::{last}", 9100, 0, 0)) for last in (2, 3)]
    found = {"both": [*six, *four], "six": six, "one": four[:1], "none": []}
    assert [places_of(Address(name, 9100), found[name]) for name in ("both", "six", "one", "none")] == [
        [("127.0.0.2:9100", "127.0.0.2", 9100), ("127.0.0.3:9100", "127.0.0.3", 9100)],
        [("[::2]:9100", "::2", 9100), ("[::3]:9100", "::3", 9100)],
        [("one:9100", "127.0.0.2", 9100)],
        [("none:9100", "none", 9100)],
    ]
