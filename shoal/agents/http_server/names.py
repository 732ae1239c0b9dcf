"""Names under which a server answers, so that no page from elsewhere reaches it by a name of its own (DNS rebinding).

A server of this machine alone answers under names and addresses of this machine. Any other answers under every address,
under this host's name, and under the names it was given.
"""

import ipaddress
import socket
from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """Host names of one server: the address it listens on, and names it was given."""

    host: str
    given: tuple[str, ...] = ()

    def allow(self, host: str) -> bool:
        """Whether a request with this Host header is answered.

        >>> here, there = Names("127.0.0.1"), Names("0.0.0.0", ("board.example",))
        >>> [here.allow(name) for name in ("localhost:80", "127.0.0.1", "[::1]:8090", "evil.example")]
        [True, True, True, False]
        >>> [there.allow(name) for name in ("10.0.0.7:8090", "Board.Example", "evil.example", "")]
        [True, True, False, False]
        """
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        name = name.strip("[]").lower()
        if name in {self.host.lower(), "localhost", *map(str.lower, self.given)} or is_local(name):
            return True
        return not is_local(self.host) and (_is_address(name) or name == socket.gethostname().lower())


def is_local(host: str) -> bool:
    """Whether a host is this machine, for itself alone.

    >>> [is_local(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "board.example")]
    [True, True, True, False, False]
    """
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
