"""SIGTERM ends a command with a line on stderr, and in order: what it had opened is closed and removed as usual."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

STATUS = 128 + signal.SIGTERM
LINE = (
    b"shoal: stopped by SIGTERM; nothing is lost: the same command makes again what is in the audit log, and goes on\n"
)


@contextmanager
def ending_in_words() -> Iterator[None]:
    """Let SIGTERM raise SystemExit inside."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    before = signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is _end:  # else it ends already, undisturbed
            signal.signal(signal.SIGTERM, before)


def _end(_signal: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not interrupt that
    os.write(2, LINE)  # stderr itself may be in the middle of a line
    sys.exit(STATUS)


def leave(_signal: int, _frame: object) -> NoReturn:
    """End a worker that has begun nothing, so that nothing is to be committed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not kill what ends already
    sys.exit(0)
