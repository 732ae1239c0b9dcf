"""The secret key on disk: made once, read only while private, bound to one audit log.

A key must meet one stream: the same noise over two inputs would show their exact difference. So `FILE.used`, beside the
key, records in which log each metric version uses it, and a second log is refused. So is the same log if it does not
know a version that has used the key, since it was restored from a copy older than the version. A version is announced
before the log registers it and confirmed afterwards, before anything is published: a crash between the two leaves an
announcement, which locks nobody out. The number of releases by file runs is recorded too, because their only other
trace is the log; what workers publish is in Kafka. Both are recorded by app, since two apps of a log may have metrics
of one name.

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

import orjson

from shoal.models.errors import KeyFileError, MissingKey

KEY_BYTES = 32
FINGERPRINT_DOMAIN = b"shoal key fingerprint v1\0"
ANNOUNCED = "announced"  # behind the log's id: the version may be registered there, and has published nothing
WORKERS = "workers"  # behind the log's id, under the app's name for the version: workers own it

Version = tuple[str, int]  # metric and version
# What a log knows: the versions that are registered, by whatever app. Each has the number of releases that file runs of
# this app have put into the log, or None where this app's workers own it.
Registered = Callable[[], Mapping[Version, int | None]]


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


def announce(path: Path, log_id: str, app: str, versions: Iterable[Version], registered: Registered) -> None:
    """Note that these metric versions are about to be registered in this log, which says what it knows.

    Raises:
        KeyFileError: the key belongs to another log, or it has met more of a version's stream than this log knows.
    """
    with _held(path, log_id) as used:
        # Asked now: what `used` has was in the log before it was written there.
        unknown = _unknown(path, used, app, versions, registered())
        _replace_used(path, used, {name: f"{log_id} {ANNOUNCED}" for name in unknown})


def bind(path: Path, log_id: str, metric_versions: Iterable[Version], *, workers_of: str | None = None) -> None:
    """Remember in `FILE.used` that these metric versions use the key in this log, and which app's workers own them.

    Raises:
        KeyFileError: the key belongs to another log.
    """
    with _held(path, log_id) as used:
        versions = list(metric_versions)
        new = dict.fromkeys(
            (name for name in map(_name, versions) if name not in used or _note(used[name]) == ANNOUNCED), log_id
        )
        if workers_of is not None:
            new |= dict.fromkeys((_published_name(workers_of, version) for version in versions), f"{log_id} {WORKERS}")
        _replace_used(path, used, new)


def remember(path: Path, log_id: str, app: str, releases: Mapping[Version, int]) -> None:
    """Record how many releases of each version file runs have put into the log; called before they are shown."""
    with _held(path, log_id) as used:
        more = {_published_name(app, version): count for version, count in releases.items()}
        less = [
            name for name in more if _note(used.get(name, "")) != WORKERS and _count(used.get(name, "")) < more[name]
        ]
        new = {name: f"{log_id} {more[name]}" for name in less}
        # Not forced to the disk: it would take longer than the run, and only a power cut could lose it.
        _replace_used(path, used, new, force=False)


def compare(path: Path, log_id: str, app: str, versions: Iterable[Version], registered: Registered) -> None:
    """Refuse what `announce` would; nothing is written."""
    with _held(path, log_id) as used:
        _unknown(path, used, app, versions, registered())


def _note(value: str) -> str:
    """The note behind the log's id."""
    return value.partition(" ")[2]


def _count(value: str) -> int:
    """The number of releases that are remembered."""
    note = _note(value)
    return int(note) if note.isdecimal() else 0


def _name(version: Version) -> str:
    return f"{version[0]}/{version[1]}"


def _published_name(app: str, version: Version) -> str:
    """The name under which is remembered what an app has published of a version."""
    return f"{app}:{_name(version)}"


@contextmanager
def _held(path: Path, log_id: str) -> Iterator[dict[str, str]]:
    """The content of `FILE.used`, locked against other processes."""
    with _opened(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)  # released when the handle is closed; the key file itself is not replaced
        used = _read_used(path)
        for name, other in sorted(used.items()):
            if other.partition(" ")[0] != log_id:
                raise KeyFileError(
                    f"{path} belongs to another audit log (metric version {name} uses it there); use that log, or make "
                    "a new key with `shoal key new FILE`"
                )
        yield used


def _unknown(
    path: Path,
    used: Mapping[str, str],
    app: str,
    versions: Iterable[Version],
    registered: Mapping[Version, int | None],
) -> list[str]:
    """Names of the versions that the log does not know yet; refused where the key has met more than the log knows."""
    unknown = []
    for version in versions:
        name, count = _name(version), registered.get(version, 0)
        if version not in registered:
            unknown.append(name)
            if name in used and _note(used[name]) != ANNOUNCED:
                raise _older(path, f"metric version {name} has used this key, and the audit log does not know it")
        if count is None:
            continue
        published = used.get(_published_name(app, version), "")
        if _note(published) == WORKERS:
            raise _older(path, f"workers publish metric version {name}, and the audit log does not know it")
        if count < (due := _count(published)):
            raise _older(path, f"metric version {name} has {due} releases, and the audit log has {count} of them")
    return unknown


def _older(path: Path, what: str) -> KeyFileError:
    return KeyFileError(
        f"{_used(path)}: {what}: the log was restored from an older copy. Restore the newer log, or raise the version"
    )


def _replace_used(path: Path, used: dict[str, str], more: dict[str, str], *, force: bool = True) -> None:
    if used | more != used:
        _write_used(path, used | more, force=force)


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


def _read_used(path: Path) -> dict[str, str]:
    """Metric version -> log id. A file that cannot be understood is refused: a guess could use a key twice."""
    try:
        content = orjson.loads(_used(path).read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise KeyFileError(f"{_used(path)} cannot be read ({error.strerror}); make it readable for this user") from None
    except orjson.JSONDecodeError:
        content = None
    if not isinstance(content, dict) or not all(isinstance(log_id, str) for log_id in content.values()):
        raise KeyFileError(f"{_used(path)} is damaged; restore it, or make a new key with `shoal key new FILE`")
    return content


def _write_used(path: Path, used: dict[str, str], *, force: bool = True) -> None:
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
            _sync_folder(part.parent)
    except OSError as error:
        raise KeyFileError(
            f"{_used(path)} cannot be written ({error.strerror}); the folder of a key must be writable for its user"
        ) from None


def _sync_folder(folder: Path) -> None:
    """Let the new name survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
