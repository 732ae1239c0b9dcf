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


def test_a_thread_that_waits_for_the_interpreter_has_it_soon() -> None:
    before = sys.getswitchinterval()
    try:
        process_settings.share_interpreter()
        assert sys.getswitchinterval() < before
    finally:
        sys.setswitchinterval(before)
