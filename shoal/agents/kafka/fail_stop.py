"""Fail-stop: the only way in which a worker ends that must not go on.

It writes a line of JSON and a line for people to stderr, and ends the process with status 1. No handler runs and
nothing is flushed: what is not committed must not be. Only the first call writes anything. Unexpected exceptions are
named by type and place alone, because their texts can hold values and their tracebacks can hold locals. Where presence
is protected, offsets and counts are left out: they tell how many events there are.
"""

import asyncio
import errno
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import orjson
from aiokafka.errors import KafkaError as ClientError
from aiokafka.errors import ProducerFenced

from shoal.agents.kafka.client_errors import explain
from shoal.models.errors import ShoalError
from shoal.models.printable import printable

# What ends a task or a command in order. Every other exception is a failure: a panic of the kernel, too, which is no
# `Exception`, and after which its state may be half changed.
ORDERLY = (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit)
# What a machine denies to any program, and who can help.
SHORTAGES = {
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "give this user the right, or name another place"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room, or name another place"),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE), "raise the limit of open files (ulimit -n)"),
    **dict.fromkeys((errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP), "name another place"),
    errno.ENOMEM: "give it more memory",
    errno.EIO: "the device has a fault; see the system's log",
}

_ending = threading.Lock()  # held for good by who ends the process
# Numbers that may count events: not those of names, versions, times or partitions.
_COUNTED = re.compile(r"(?<![\w.:/\[-])(?<!partition )(?<!version )(?<!format )\d+(?![\w\]-]|[:.]\d)")
_discretion = False


def be_discreet() -> None:
    """From now on, leave out numbers that may count events."""
    global _discretion
    _discretion = True


def unless_discreet(**durations: float) -> dict[str, float]:
    """What a log line may say of how long something took that takes the longer, the more events there are."""
    return {} if _discretion else durations


def without_counts(text: str) -> str:
    """A message without the numbers that may count events.

    >>> without_counts("topic events, partition 3: message 17 of metric m/2 at offset 99, 4 accounts; b[5] is away")
    'topic events, partition 3: message ... of metric m/2 at offset ..., ... accounts; b[5] is away'
    """
    return _COUNTED.sub("...", text)


def describe(error: BaseException, where: str) -> str:
    """One line about an exception that holds no value, user id or key."""
    said = _describe(error, where)
    return without_counts(said) if _discretion else said


def _describe(error: BaseException, where: str) -> str:
    if isinstance(error, ShoalError):
        return str(error)
    if isinstance(error, ProducerFenced):
        return (
            f"{where}: fenced; another worker owns it now, or the brokers were away for longer than a transaction may "
            "last; nothing of this worker's open transaction is visible; restart the worker"
        )
    meaning = explain(error)
    if meaning is not None:
        return f"{where}: {meaning}"
    if isinstance(error, OSError) and error.errno in SHORTAGES:
        file = f"{error.filename}: " if error.filename else ""
        return f"{where}: {file}{error.strerror}; {SHORTAGES[error.errno]}; nothing half done was published"
    kind = type(error).__name__
    if isinstance(error, ClientError):
        return f"{where}: Kafka refused: {kind}: {str(error)[:300]}".replace("\n", " ")
    return f"{where}: unexpected {kind} at {_origin(error)}; this is a bug; nothing half done was published"


def fail_stop(error: BaseException, where: str) -> NoReturn:
    """Say why and end the process with status 1, from any thread."""
    _ending.acquire()  # others wait for the end
    message = describe(error, where)
    kind = type(error).__name__
    entry = {"event": "fail_stop", "level": "critical", "timestamp": _now(), "error": kind, "message": message}
    try:
        sys.stderr.write(f"{printable(orjson.dumps(entry).decode())}\nshoal: {printable(message)}\n")
        sys.stderr.flush()
    finally:
        os._exit(1)


@contextmanager
def stop_on_failure(where: str) -> Iterator[None]:
    """End the process if what is done in here fails."""
    try:
        yield
    except ORDERLY:
        raise
    except BaseException as error:
        fail_stop(error, where)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _origin(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "an unknown place"
    last = frames[-1]
    ours = [frame for frame in frames if "shoal" in Path(frame.filename).parts]
    lines = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in [*ours[-1:], last]]
    return " in ".join(dict.fromkeys(reversed(lines)))
