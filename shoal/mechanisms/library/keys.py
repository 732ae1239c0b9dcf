"""Keys of the library, and the record of what was released under each.

Noise is a function of the key alone, so two streams under one key have one noise: their difference is exact, and
nothing is left of the guarantee. Two things stand against it:

    by construction     the key of a stream is derived from the caller's, its names and all parameters, so that streams
                        with other names or parameters have independent noise
    by a record         of every key that was opened in this process: what each release was made of, as a digest. The
                        same input may be released again, for it is the same bytes; another is refused before it is

What another process released under a key, nobody here knows. A worker, `shoal run` and the ledger do.

Source       keyed noise and its names: shoal/mechanisms/noise/keyed.py; docs/proofs/one-stream.md
"""

import hashlib
from collections.abc import Iterable

from shoal.mechanisms.noise.keyed import derive, metric_key
from shoal.mechanisms.noise.names import encode

KEY_BYTES = 32
DIGEST_BYTES = 16
_RELEASED: dict[bytes, bytearray] = {}  # fingerprint of a stream's key -> for each release a digest of all before it


class KeyReused(ValueError):
    """Another input was to be released under a key that has released one before.

    Shapes   none; it is an error
    Units    none
    Raises   it is raised by the method that would release: the number was not made, and the stream is of no more use
    Source   docs/proofs/one-stream.md: the difference of two streams under one key has no noise

    >>> from fractions import Fraction
    >>> from shoal.mechanisms import Counter, Key, KeyReused
    >>> visits, key = Counter(epsilon=Fraction(1)), Key(bytes(range(32))).named("visits")
    >>> once, again, other = visits.open(key), visits.open(key), visits.open(key)
    >>> once.add(3) == again.add(3)
    True
    >>> other.add(4)
    Traceback (most recent call last):
    shoal.mechanisms.library.keys.KeyReused: this key has released another input: the difference of the two releases \
number 1 would have no noise; give each stream a name of its own (Key.named)
    """


class Key:
    """The secret from which all noise of a stream follows: 32 random bytes, as `secrets.token_bytes(32)` makes them.

    `named` derives independent keys, one for each stream; parameters are part of what a stream's noise is named by.
    Whoever has the key can subtract the noise. It shows itself to nobody: not by `repr`, and it is not pickled.

    Shapes   32 bytes; names are str or int
    Units    none
    Raises   TypeError: no bytes, or it is to be pickled; ValueError: not 32 bytes, or no name
    Source   Krawczyk and Eronen, RFC 5869 (HKDF); docs/proofs/keyed-noise.md

    >>> import secrets
    >>> from shoal.mechanisms import Key
    >>> key = Key(secrets.token_bytes(32))
    >>> key.named("visits"), key.named("visits", 2026)
    (Key(...), Key(...))
    """

    __slots__ = ("_covers_parameters", "_secret")

    def __init__(self, secret: bytes) -> None:
        if not isinstance(secret, bytes):
            raise TypeError(f"a key is {KEY_BYTES} bytes, such as secrets.token_bytes({KEY_BYTES}), not "
                            f"{type(secret).__name__}")  # fmt: skip
        if len(secret) != KEY_BYTES:
            raise ValueError(
                f"a key has {KEY_BYTES} bytes, such as secrets.token_bytes({KEY_BYTES}), not {len(secret)}"
            )
        self._secret = secret
        self._covers_parameters = False

    @classmethod
    def of_metric(cls, secret: bytes, name: str, version: int, digest: str) -> "Key":
        """The key of a metric version of shoal, whose digest covers its parameters: the noise of `shoal run`.

        Whoever opens it with other parameters than the metric's has the metric's noise on other numbers.
        """
        key = cls(metric_key(cls(secret)._secret, name, version, digest))
        key._covers_parameters = True
        return key

    def named(self, *names: str | int) -> "Key":
        """The key of this name: other names, other noise."""
        if not names:
            raise ValueError("a key needs a name: named('visits')")
        if self._covers_parameters:
            raise ValueError("the key of a metric version has its name already; name the key that it was made of")
        return Key(derive(self._secret, "library", "named", *names))

    def __repr__(self) -> str:
        return "Key(...)"

    def __reduce__(self) -> str:
        raise TypeError("a key is not pickled, or copied: it would lie wherever that goes")

    def _of_stream(self, parameters: Iterable[str | int]) -> bytes:
        """The bytes that a stream with these parameters draws from."""
        return self._secret if self._covers_parameters else derive(self._secret, "library", "stream", *parameters)


class Transcript:
    """What a stream under a key was given, held against what any other in this process was."""

    __slots__ = ("_at", "_given", "_released")

    def __init__(self, secret: bytes) -> None:
        self._released = _RELEASED.setdefault(hashlib.sha256(secret).digest(), bytearray())
        self._given = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self._at = 0  # releases so far

    def note(self, *parts: bytes | str | int) -> None:
        """Add an input to the digest by which a later stream under the same key is compared with this one."""
        self._given.update(encode(*parts))

    def release(self) -> None:
        """Record that all this is about to be released.

        Raises:
            KeyReused: this key has released something else there.
        """
        begin, digest = self._at * DIGEST_BYTES, self._given.digest()
        before = self._released[begin : begin + DIGEST_BYTES]
        if before and before != digest:
            raise KeyReused(
                f"this key has released another input: the difference of the two releases number {self._at + 1} would "
                "have no noise; give each stream a name of its own (Key.named)"
            )
        if not before:
            self._released += digest
        self._at += 1
