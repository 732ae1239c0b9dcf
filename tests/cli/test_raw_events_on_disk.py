"""Raw events on disk: files of them are for their user alone, and a run that is killed leaves no copy of its input."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.desk import EVENTS, MEAN, Desk, changed, lines
from tests.support.workers import wait_until

# 240 releases are more than a pipe holds: nobody reads them, so the run waits for ever.
FILLS_A_PIPE = MEAN.replace('"1h"', '"1m"').replace("max_per_group = 4", "max_per_group = 12")
REFUSED = changed(x=lambda _: "secret")
LETTERS = ("--dead-letters", "dead.jsonl")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.slow
def test_a_killed_run_leaves_no_copy_of_its_input_and_no_file_of_events_that_others_can_read(desk: Desk) -> None:
    # given a run of standard input that has copied and sorted its events, and is in the middle of its output
    desk.say(FILLS_A_PIPE)
    (desk.folder / "tmp").mkdir()
    os.mkfifo(desk.folder / "out")
    command = [
        sys.executable,
        "-m",
        "shoal",
        "run",
        "shoal.toml",
        "--input",
        "-",
        "--sort",
        "--output",
        "out",
        *LETTERS,
    ]
    environment = os.environ | {"TMPDIR": str(desk.folder / "tmp")}
    with subprocess.Popen(command, cwd=desk.folder, env=environment, stdin=subprocess.PIPE, umask=0) as process:
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(lines([*EVENTS, *REFUSED]))
        with (desk.folder / "out").open("rb"):  # the run waits until it is opened
            parts = lambda: list(desk.folder.glob(".dead.jsonl.*.part"))  # noqa: E731
            wait_until(parts, 60, lambda: f"no part; the run's status: {process.poll()}")
            # when it is killed
            process.kill()
            process.wait()
    # then
    assert list((desk.folder / "tmp").iterdir()) == []
    (part,) = parts()
    assert mode(part) == 0o600


@pytest.mark.parametrize("is_empty", [False, True])
def test_dead_letters_are_for_their_user_alone_whatever_the_umask_is(desk: Desk, is_empty: bool) -> None:
    desk.put("in.jsonl", b"" if is_empty else lines([*EVENTS, *REFUSED]))
    before = os.umask(0)
    try:
        desk.run("in.jsonl", *LETTERS, "--open")
    finally:
        os.umask(before)
    assert (mode(desk.folder / "out.jsonl"), mode(desk.folder / "dead.jsonl")) == (0o666, 0o600)
    # and who lets a group read them is asked once
    (desk.folder / "dead.jsonl").chmod(0o640)
    desk.run("in.jsonl", *LETTERS, "--open")
    assert mode(desk.folder / "dead.jsonl") == 0o640
