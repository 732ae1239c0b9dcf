"""Names of a metric version: the one that an app registers it under, and the one that its noise is derived from."""

from hashlib import sha256
from typing import NamedTuple, Protocol

from shoal.mechanisms.noise.names import encode


class _Registered(Protocol):
    @property
    def app(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def version(self) -> int: ...


class VersionId(NamedTuple):
    """Identity of a metric version: app, metric and number; the key of all that is collected by version.

    >>> str(VersionId("shop", "basket", 2)), VersionId("shop", "basket", 2).label
    ('metric "basket" version 2', 'basket/2')
    """

    app: str
    metric: str
    version: int

    @classmethod
    def of(cls, row: _Registered) -> "VersionId":
        """Name of the version that a row or registration is about."""
        return cls(row.app, row.metric, row.version)

    @property
    def label(self) -> str:
        """Name of the version within its app."""
        return f"{self.metric}/{self.version}"

    def __str__(self) -> str:
        return f'metric "{self.metric}" version {self.version}'


class NoiseName(NamedTuple):
    """Name of a noise: with the secret it determines all noise of a version, in whichever app.

    It has the arguments of `metric_key` beside the secret.
    """

    metric: str
    version: int
    digest: str  # hexadecimal, of the version's parameters

    @property
    def hex(self) -> str:
        """SHA-256 of the name, in hexadecimal: the name under which `FILE.used` has it."""
        return sha256(encode("noise", *self)).hexdigest()

    def __str__(self) -> str:
        return f'metric "{self.metric}" version {self.version}'
