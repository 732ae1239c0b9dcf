"""The secret key on disk: made once, read only while private, bound to one audit log.

A key must meet one stream: the same noise over two inputs would show their exact difference. So `FILE.used`, beside the
key, records the audit log, and which noise has been used by which app; a second log is refused. So is the same log if
some noise has met more than it knows, since it was restored from an older copy. Noise is announced before the log
registers its version and confirmed afterwards, before anything is published: a crash between the two leaves an
announcement, which locks nobody out. The number of releases by file runs is recorded too, because their only other
trace is the log; what workers publish is in Kafka.

A copied key file cannot be detected: two deployments must never share one.
"""

import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from shoal.models.errors import KeyFileError, MissingKey
from shoal.models.version import NoiseName

KEY_BYTES = 32
FINGERPRINT_DOMAIN = b"shoal key fingerprint v1\0"
FORMAT = 1  # of `FILE.used`
ANNOUNCED, USED = "announced", "used"  # an announced version may be registered, and has published nothing
NOTED = {"app": str, "metric": str, "version": int, "state": str, "owner": str, "releases": int}


class NoiseUse(NamedTuple):
    """Use of a noise according to the audit log: app and owner of its version, and the number of its releases."""

    app: str
    owner: str
    releases: int


Logged = Callable[[], Mapping[NoiseName, NoiseUse]]  # asked while `FILE.used` is locked
Noise = dict[str, dict[str, Any]]  # what is noted, by the hexadecimal name of the noise


@dataclass(frozen=True)
class Key:
    """The key, and a name for it that may be shown."""

    secret: bytes = field(repr=False)
    fingerprint: str


def fingerprint(secret: bytes) -> str:
    """Sixteen digits that tell keys apart and say nothing else about them: the key has 256 random bits."""
    return sha256(FINGERPRINT_DOMAIN + secret).hexdigest()[:16]


def new(path: Path) -> Key:
    """Make a key file, mode 0600; what is there already is never overwritten."""
    if path.name in ("", ".."):
        raise KeyFileError(f"{path} names no file; name a file, as in: shoal key new shoal.key")
    secret = secrets.token_bytes(KEY_BYTES)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise KeyFileError(f"{path} exists and is not overwritten; choose another name") from None
    except OSError as error:
        raise KeyFileError(f"{path} cannot be made ({error.strerror}); choose another place") from None
    with os.fdopen(handle, "wb") as file:
        file.write(secret.hex().encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return Key(secret, fingerprint(secret))


def read(path: Path) -> Key:
    """Read a key file; refused unless it is a key and no one else may read it."""
    with _opened(path) as handle:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode):
            raise KeyFileError(f"{path} is not a file; name a file made by `shoal key new FILE`")
        if mode & 0o077:
            raise KeyFileError(f"{path} is open to others (mode {stat.S_IMODE(mode):04o}); run: chmod 600 {path}")
        content = os.read(handle, 4 * KEY_BYTES)
    secret = secret_in(content)
    if secret is None:
        raise KeyFileError(f"{path} does not hold a key; restore it, or make a new one with `shoal key new FILE`")
    return Key(secret, fingerprint(secret))


def secret_in(content: bytes) -> bytes | None:
    """The secret, if this is what a key file begins with and nothing follows."""
    try:
        secret = bytes.fromhex(content.decode("ascii").removesuffix("\n"))
    except ValueError:
        return None
    return secret if len(secret) == KEY_BYTES and len(content) <= 2 * KEY_BYTES + 1 else None


def announce(path: Path, log_id: str, app: str, owner: str, names: Iterable[NoiseName], logged: Logged) -> None:
    """Mark noise in `FILE.used` as announced, before its versions are registered in this log.

    Raises:
        KeyFileError: the key belongs to another log, or noise has met more than this log knows.
    """
    with _held(path, log_id) as noise:
        new = _unknown(path, noise, app, names, logged())
        state = {"app": app, "state": ANNOUNCED, "owner": owner, "releases": 0}
        _replace_used(path, log_id, noise, {name.hex: state | name._asdict() for name in new})


def bind(path: Path, log_id: str, names: Iterable[NoiseName], logged: Logged) -> None:
    """Mark noise in `FILE.used` as used, after its versions were registered in this log.

    Raises:
        KeyFileError: the key belongs to another log.
    """
    with _held(path, log_id) as noise:
        known = logged()
        used = {name.hex: name._asdict() | known[name]._asdict() | {"state": USED} for name in names}
        new = {name: one for name, one in used.items() if noise.get(name, {}).get("state") != USED}
        _replace_used(path, log_id, noise, new)


def remember(path: Path, log_id: str, releases: Mapping[NoiseName, int]) -> None:
    """Record how many releases of each version file runs have put into the log; called before they are shown."""
    with _held(path, log_id) as noise:
        if lost := [name for name in releases if name.hex not in noise]:
            raise KeyFileError(
                f"{_used(path)} was replaced while this run went on: it lacks {lost[0]}; run the command again"
            )
        more = {name.hex: count for name, count in releases.items() if count > noise[name.hex]["releases"]}
        new = {name: noise[name] | {"releases": count} for name, count in more.items()}
        # Not forced to the disk: it would take longer than the run, and only a power cut could lose it.
        _replace_used(path, log_id, noise, new, force=False)


def compare(path: Path, log_id: str, app: str, names: Iterable[NoiseName], logged: Logged) -> None:
    """Raise what `announce` would raise, without writing `FILE.used`."""
    with _held(path, log_id) as noise:
        _unknown(path, noise, app, names, logged())


def refuse_other_log(path: Path, log_id: str, copy: Path) -> None:
    """Refuse a copy of another audit log than the one to which `FILE.used`, if it is there, binds a key.

    Raises:
        KeyFileError: it is of another log.
    """
    bound, _ = _read_used(path, log_id)
    if bound != log_id:
        raise KeyFileError(
            f"{copy}: is a copy of audit log {log_id}, and the key {path} belongs to audit log {bound}; use a copy of "
            "that log, or put the key of this one back"
        )


@contextmanager
def _held(path: Path, log_id: str) -> Iterator[Noise]:
    """Noise entries of `FILE.used`, which is locked against other processes within the block."""
    with _opened(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # released when the handle is closed; the key file itself is not replaced
        log, noise = _read_used(path, log_id)
        if log != log_id:
            raise KeyFileError(
                f"{path} belongs to another audit log; use that log, or make a new key with `shoal key new FILE`"
            )
        yield noise


def _unknown(
    path: Path, noise: Noise, app: str, names: Iterable[NoiseName], logged: Mapping[NoiseName, NoiseUse]
) -> list[NoiseName]:
    """Names that `FILE.used` has not marked as used.

    Raises:
        KeyFileError: the log knows less of a noise that is marked as used.
    """
    unknown = []
    for name in names:
        noted, known = noise.get(name.hex), logged.get(name)
        if noted is None or noted["state"] == ANNOUNCED:
            unknown.append(name)
            continue
        used = f'the noise of {name} was used by app "{noted["app"]}"'
        if known is None or (known.app, known.owner) != (noted["app"], noted["owner"]) or known.app != app:
            raise _older(path, f"{used}, and this log does not know it")
        if known.releases < noted["releases"]:
            raise _older(path, f"{used} for {noted['releases']} releases, and this log has {known.releases} of them")
    return unknown


def _older(path: Path, what: str) -> KeyFileError:
    return KeyFileError(f"{_used(path)}: {what}: restore the newer log, or raise the version")


def _replace_used(path: Path, log_id: str, noise: Noise, more: Noise, *, force: bool = True) -> None:
    if noise | more != noise:
        _write_used(path, {"format": FORMAT, "log": log_id, "noise": noise | more}, force=force)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise MissingKey(f"{path} does not exist; make it with: shoal key new {path}") from None
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read ({error.strerror}); make it readable for this user") from None
    try:
        yield handle
    finally:
        os.close(handle)


def _used(path: Path) -> Path:
    """The path beside the file itself, not beside a link to it: a key under two names is one key."""
    real = path.resolve()
    return real.with_name(real.name + ".used")


def _read_used(path: Path, log_id: str) -> tuple[str, Noise]:
    """Log id and noise entries in the file beside a key; the given log and no entries if there is no such file.

    Raises:
        KeyFileError: the file cannot be understood: a guess could use a key twice.
    """
    try:
        content = orjson.loads(_used(path).read_bytes())
    except FileNotFoundError:
        return log_id, {}
    except OSError as error:
        raise KeyFileError(f"{_used(path)} cannot be read ({error.strerror}); make it readable for this user") from None
    except orjson.JSONDecodeError:
        content = None
    match content:
        case {"format": int(number)} if number > FORMAT:
            raise KeyFileError(f"{_used(path)} was written by a later version of shoal; upgrade shoal")
        case {"format": 1, "log": str(log), "noise": dict(noise)} if all(map(_is_noted, noise.values())):
            return log, noise
    raise KeyFileError(f"{_used(path)} is damaged; restore it, or make a new key with `shoal key new FILE`")


def _is_noted(value: Any) -> bool:
    """Whether an entry of `FILE.used` has all fields of `NOTED` with their types."""
    return isinstance(value, dict) and all(type(value.get(name)) is kind for name, kind in NOTED.items())


def _write_used(path: Path, used: dict[str, Any], *, force: bool = True) -> None:
    """Replace `FILE.used` as a whole: a crash leaves the old one or the new one."""
    part = _used(path).with_suffix(".used.part")  # one writer at a time: the caller holds the lock
    try:
        part.unlink(missing_ok=True)
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(
                orjson.dumps(used, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
            )
            file.flush()
            if force:
                os.fsync(file.fileno())
        part.replace(_used(path))
        if force:
            sync_folder(part.parent)
    except OSError as error:
        raise KeyFileError(
            f"{_used(path)} cannot be written ({error.strerror}); the folder of a key must be writable for its user"
        ) from None


def sync_folder(folder: Path) -> None:
    """Let the new name survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
