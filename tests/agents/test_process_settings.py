"""What processes settle before they begin."""

import subprocess
import sys

from shoal.agents import process_settings

FAULTS = """
import resource, sys
from shoal.agents.process_settings import keep_freed_memory
if sys.argv[1] == "keep":
    keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    blocks = [bytearray(size) for size in (24 << 20, 1 << 20)]
    del blocks
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    """Pages that the system had to give to a process that allocates and frees large blocks."""
    done = subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_memory_that_was_freed_is_used_again() -> None:
    assert faults("keep") < 0.7 * faults("give back")


KEPT = """
import psutil
from shoal.agents.process_settings import give_freed_memory_back, keep_freed_memory
keep_freed_memory()
now = lambda: psutil.Process().memory_info().rss
before = now()
blocks = [bytearray(8 << 20) for _ in range(6)]
del blocks
kept = now() - before
give_freed_memory_back()
print(kept >> 20, (now() - before) >> 20)
"""


def test_memory_that_is_kept_can_be_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True)
    kept, then = map(int, done.stdout.split())
    assert kept > 40 > 4 > then


def test_a_thread_that_waits_for_the_interpreter_has_it_soon() -> None:
    before = sys.getswitchinterval()
    try:
        process_settings.share_interpreter()
        assert sys.getswitchinterval() < before
    finally:
        sys.setswitchinterval(before)
