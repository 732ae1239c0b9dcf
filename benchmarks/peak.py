"""Run a module as a program, and note the most memory that it ever had, in kilobytes.

python -m benchmarks.peak NOTE MODULE [ARGUMENT ...]

What a parent is told of a child that has ended (`ru_maxrss`) is no less than the parent's own peak: on Linux the figure
outlives `exec`. The one that a process reads of itself begins anew there.
"""

import runpy
import sys
from pathlib import Path


def peak() -> int:
    """The most memory that this process ever had, in kilobytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def main() -> None:
    """Run it, and write the note however it ends."""
    _, note, module, *arguments = sys.argv
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        Path(note).write_text(str(peak()))


if __name__ == "__main__":
    main()
