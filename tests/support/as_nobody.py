"""A call by a user without rights, for what is refused to ordinary users and allowed to root."""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection

NOBODY = 65534


def as_nobody(act: Callable[[], str]) -> str:
    """Call `act` in a process of another user, if this one is root, and return its text or that of its error.

    What `act` imports it must have imported before: that user may not read a home of root.
    """
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_act, args=(act, theirs))
    process.start()
    theirs.close()
    try:
        return str(ours.recv())
    finally:
        process.join()


def _act(act: Callable[[], str], answer: Connection) -> None:
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    try:
        answer.send(act())
    except Exception as error:
        answer.send(f"{type(error).__name__}: {error}")
