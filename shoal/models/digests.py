"""The chain of digests that makes a changed or missing release show, and the digest of parameters.

Every (metric, version, group) has a chain of its own. It covers the bytes of its releases and nothing else: no offsets
and no times of insertion, so anyone who holds the releases can compute it again.
"""

from hashlib import sha256

FIRST = bytes(32)  # what stands before the first release of a group


def chain(previous: bytes, release: bytes) -> bytes:
    """The digest of a release and of all that its group published before it.

    >>> chain(chain(FIRST, b"one"), b"two").hex()[:16]
    'b9f0cc527d38ea48'
    """
    return sha256(previous + release).digest()


def parameters_digest(parameters: str) -> str:
    """The digest, in hexadecimal, of a metric version's parameters as the text that the ledger keeps.

    >>> parameters_digest("{}")[:16]
    '44136fa355b3678a'
    """
    return sha256(parameters.encode()).hexdigest()
