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
from concurrent.futures import ThreadPoolExecutor
import psutil
from shoal.agents.process_settings import giving_freed_memory_back, keep_freed_memory
def allocate():
    blocks = [bytearray(8 << 20) for _ in range(6)]
def kept():
    before = psutil.Process().memory_info().rss
    with ThreadPoolExecutor(1) as threads:
        threads.submit(allocate).result()
        return psutil.Process().memory_info().rss - before
keep_freed_memory()
print(kept() >> 20)
with giving_freed_memory_back():
    print(kept() >> 20)
print(kept() >> 20)
"""


def test_memory_that_is_kept_can_be_given_back_for_a_while_by_threads_that_go_on() -> None:
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True)
    before, meanwhile, after = map(int, done.stdout.split())
    assert before > 40 > 4 > meanwhile
    assert after > 40


def test_a_thread_that_waits_for_the_interpreter_has_it_soon() -> None:
    before = sys.getswitchinterval()
    try:
        process_settings.share_interpreter()
        assert sys.getswitchinterval() < before
    finally:
        sys.setswitchinterval(before)
