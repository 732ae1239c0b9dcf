"""What our processes settle before they begin: garbage collection, silent libraries, and signals."""

import ctypes
import gc
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h


def tune_garbage_collector() -> None:
    """Look for cycles rarely: walking the whole state found none, and cost 38 % of throughput."""
    gc.set_threshold(100_000, 50, 1000)


def keep_freed_memory() -> None:
    """Have the C library keep memory that is freed for the next fetch, up to 64 MB of it.

    Otherwise it gives large blocks back at once, and the system clears each page again when it is first written to,
    which takes longer than the copy. These are the limits that glibc comes to by itself once blocks of 32 MB were
    freed; other libraries have no such call.
    """
    _keep(blocks=32 << 20, at_an_end=64 << 20)


@contextmanager
def giving_freed_memory_back() -> Iterator[None]:
    """Have the C library give the system large blocks as they are freed, and then all that is free.

    What a restore needs for itself is far more than the next fetches. Each thread's memory ends with what was freed
    there last, which the library can only give back as it is freed.
    """
    _keep(blocks=4 << 20, at_an_end=1 << 20)
    try:
        yield
    finally:
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
        keep_freed_memory()


def _keep(*, blocks: int, at_an_end: int) -> None:
    """Keep freed blocks up to a size, and so many bytes at the end of what each thread has allocated."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, blocks)
        mallopt(M_TRIM_THRESHOLD, at_an_end)


def share_interpreter() -> None:
    """Let threads that wait for the interpreter have it after a millisecond, not five.

    A transaction has some ten waits for brokers, and a fetch as many. After each, its thread would stand behind the one
    that writes the audit log, which runs for as long as it may.
    """
    sys.setswitchinterval(0.001)


def quiet_libraries() -> None:
    """Silence Faust, mode and aiokafka, whose services log under the module of their class, also under ours."""
    ours = ("shoal.agents.worker.app", "shoal.agents.kafka.transport", "shoal.agents.worker.tables")
    for name in ("faust", "mode", "aiokafka", "asyncio", *ours):
        logger = logging.getLogger(name)
        logger.setLevel(logging.CRITICAL)
        logger.propagate = False
        logger.addHandler(logging.NullHandler())


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does, for a command that has nothing to lose.

    And let SIGINT do it where a shell had it ignored, as for a command that ends with `&`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    mine = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _as_ctrl_c}
    before = {number: signal.signal(number, handler) for number, handler in mine.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _as_ctrl_c(_signal: int, _frame: object) -> None:
    signal.raise_signal(signal.SIGINT)  # within asyncio too, where SIGINT has a handler of its own
