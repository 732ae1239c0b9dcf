"""Standard error that drops what it cannot write: whole lines before and after, and an exact number of lost ones."""

import subprocess
import sys
from pathlib import Path

import orjson

# A file that may have 100 bytes: a line fits, the second in part, the third not at all. Then there is room.
FULL = """
import resource, sys
from shoal.agents.log_stream import drop_unwritable_lines, lines_lost
drop_unwritable_lines()
resource.setrlimit(resource.RLIMIT_FSIZE, (100, -1))
for name in "abc":
    print(name * 59, file=sys.stderr)
resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
for name in "de":
    print(name * 59, file=sys.stderr)
sys.exit(lines_lost())
"""


def test_lines_after_a_full_disk_are_whole_and_the_first_says_how_many_were_lost(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        status = subprocess.run([sys.executable, "-c", FULL], stderr=log, check=False).returncode
    first, cut, report, fourth, fifth = (tmp_path / "log").read_text().splitlines()
    assert (first, cut, fourth, fifth) == ("a" * 59, "b" * 40, "d" * 59, "e" * 59)
    said = orjson.loads(report)
    assert (said["event"], said["lines"], said["reason"]) == ("log_lines_lost", 2, "File too large")
    assert status == 2


def test_a_closed_standard_error_is_no_failure() -> None:
    program = (
        "import sys; from shoal.agents import log_stream as s; s.drop_unwritable_lines(); print(1, file=sys.stderr)"
    )
    command = ["sh", "-c", 'exec "$0" -c "$1" 2>&-', sys.executable, program]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
