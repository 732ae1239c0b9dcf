"""A call by a user without rights, for what is refused to ordinary users and allowed to root."""

import os
from collections.abc import Callable
from typing import NoReturn

NOBODY = 65534


def as_nobody(act: Callable[[], str]) -> str:
    """Call `act` in a process of another user, if this one is root, and return its text or that of its error.

    What `act` imports it must have imported before: that user may not read a home of root.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _answer(act, writing)
    os.close(writing)
    with open(reading, encoding="utf-8") as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return text


def _answer(act: Callable[[], str], writing: int) -> NoReturn:
    """Write what `act` returns, and end at once: exit handlers would end servers of the tests' process."""
    try:
        if os.getuid() == 0:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        text = act()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    try:
        os.write(writing, text.encode())
    finally:
        os._exit(0)
