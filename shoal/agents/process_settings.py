"""What our processes settle before they begin: garbage collection, silent libraries, and signals."""

import gc
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


def tune_garbage_collector() -> None:
    """Look for cycles rarely: walking the whole state found none, and cost 38 % of throughput."""
    gc.set_threshold(100_000, 50, 1000)


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
