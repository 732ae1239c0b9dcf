"""Keyed bits: every random bit is a function of the secret key and of a name that no two draws share.

Guarantee    computational: anyone who lacks the key cannot tell the bits from fair coins (AES-256 in counter mode)
Name         (subkey, index). A subkey is HKDF-SHA256 of the metric's key and a length-prefixed tuple: group, purpose,
             statistic, coordinate, level, epoch. A draw owns the words at index * words .. index * words + words - 1;
             the rare draw that needs more reads on in a stream whose subkey names that draw
Proof        docs/proofs/keyed-noise.md
Source       Krawczyk and Eronen, RFC 5869 (HKDF); NIST SP 800-38A (counter mode)
"""

import hashlib
import struct
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import chain

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from shoal.mechanisms.noise.names import encode

WORDS = 32  # 64-bit words per draw; a discrete Laplace draw needs 7 on average, more than 32 once in about 4,500
MAX_INDEX = 1 << 48  # draws per subkey: 2**52 or 2**53 blocks of AES, far below the birthday bound of 2**64


def derive(key: bytes, *parts: bytes | str | int) -> bytes:
    """The 32-byte subkey of a name; different names give independent subkeys."""
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=encode(*parts)).derive(key)


def metric_key(master: bytes, name: str, version: int, digest: str | bytes) -> bytes:
    """The key of one metric version: it changes with anything that the digest of the parameters covers."""
    return derive(master, "metric", name, version, digest)


def pseudonym_key(metric_key: bytes) -> bytes:
    """The key of the hash that makes pseudonyms of users: BLAKE2b, of 16 bytes."""
    return derive(metric_key, "pseudonym")


def pseudonymizer(metric_key: bytes) -> Callable[[bytes], str]:
    """A function from a user's bytes to 32 hex digits that mean nothing without the key."""
    fresh = hashlib.blake2b(key=pseudonym_key(metric_key), digest_size=16)

    def pseudonym(user: bytes) -> str:
        digest = fresh.copy()
        digest.update(user)
        return digest.hexdigest()

    return pseudonym


_FROM_ZERO = modes.CTR(bytes(16))


@lru_cache(maxsize=64)  # of all draws of so many words: thousands of subkeys are in use at a time
def _form(words: int) -> tuple[bytes, Callable[[bytes], tuple[int, ...]]]:
    """The zeros that a draw is encrypted from, and what makes words of it."""
    return bytes(8 * words), struct.Struct(f"<{words}Q").unpack


class Bits:
    """The keyed bits of one subkey, addressable by draw: `draw(index)` yields that draw's 64-bit words.

    All draws of a subkey belong to one sampler, which says how many words each draw has of its own: an even number.
    """

    __slots__ = ("_stream", "_subkey", "_unpack", "_zeros", "words")

    def __init__(self, subkey: bytes, words: int = WORDS) -> None:
        self._subkey = subkey
        self.words = words
        self._zeros, self._unpack = _form(words)
        self._stream = Cipher(algorithms.AES(subkey), _FROM_ZERO).encryptor()

    def draw(self, index: int) -> Iterator[int]:
        """The words of draw `index`, without end and always the same.

        >>> bits = Bits(bytes(32))
        >>> next(bits.draw(5)) == next(bits.draw(5)), next(bits.draw(5)) == next(bits.draw(6))
        (True, False)
        """
        return chain(self._unpack(self.block(index, 1)), self._overflow(index))

    def block(self, start: int, count: int) -> bytes:
        """The fixed words, little-endian, of draws start .. start + count - 1, from one call of the cipher."""
        if start < 0 or start + count > MAX_INDEX:  # beyond it the bits would be another draw's
            raise ValueError(f"draws {start} to {start + count - 1} are not all in 0 .. {MAX_INDEX - 1}")
        self._stream.reset_nonce((start * self.words // 2).to_bytes(16, "big"))  # a block of AES is two words
        return self._stream.update(self._zeros if count == 1 else self._zeros * count)

    def _overflow(self, index: int) -> Iterator[int]:
        further = Bits(derive(self._subkey, "overflow", index))
        position = 0
        while True:
            yield from further._unpack(further.block(position, 1))
            position += 1
