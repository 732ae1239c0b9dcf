"""A command that is told to stop says so in a line, and leaves in order: what it had opened is closed and tidied up."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

TOLD_TO_STOP = 128 + signal.SIGTERM
LINE = (
    b"shoal: stopped by SIGTERM; nothing is lost: the same command makes again what is in the audit log, and goes on\n"
)


@contextmanager
def ending_in_words() -> Iterator[None]:
    """SIGTERM ends what is inside by an exit."""
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
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second one must not interrupt the tidying
    os.write(2, LINE)  # stderr itself may be in the middle of a line
    sys.exit(TOLD_TO_STOP)
