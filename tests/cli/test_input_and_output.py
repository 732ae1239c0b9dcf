"""`shoal run` beside what it reads: outputs, registered versions, a run that is stopped, and very long values."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from shoal.agents.audit.ledger import Ledger
from shoal.models.errors import InputError, LedgerError
from tests.support.desk import CONFIG, EVENTS, OPTIONS, changed, lines, table

pytestmark = pytest.mark.slow

# ---------------------------------------------------------------- one file, two things


ROLES = {"in.jsonl": "the input", "shoal.toml": "the configuration", "shoal.key": "the key file"}


@pytest.mark.parametrize("option", ["--output", "--dead-letters"])
@pytest.mark.parametrize("kept", [*ROLES, "shoal.key.used", "log.db", "log.db-wal"])
@pytest.mark.parametrize("way", ["path", "symlink", "hard link"])
def test_what_is_written_is_none_of_what_is_read(desk, option, kept, way):
    desk.put("in.jsonl", lines(EVENTS))
    if kept not in ROLES:
        desk.put(kept, b"")
    content = (desk.folder / kept).read_bytes()
    name = {"path": f"../{desk.folder.name}/{kept}", "symlink": "link", "hard link": "link"}[way]
    if way == "symlink":
        (desk.folder / name).symlink_to(kept)
    elif way == "hard link":
        os.link(desk.folder / kept, desk.folder / name)
    other = ("--output", "o") if option == "--dead-letters" else ()
    result = desk.call("--input", "in.jsonl", *other, option, name)
    assert isinstance(result.exception, InputError)
    assert option in str(result.exception)
    assert (desk.folder / kept).read_bytes() == content


def test_no_two_outputs_are_one_file_and_the_log_is_no_input(desk):
    desk.put("in.jsonl", lines(EVENTS))
    result = desk.call("--input", "in.jsonl", "--output", "o", "--dead-letters", "./o")
    assert "--output and --dead-letters are one file" in str(result.exception)
    desk.say(CONFIG.replace("log.db", "in.jsonl"))
    assert "the audit log and the input are one file" in desk.refused("in.jsonl")
    assert (desk.folder / "in.jsonl").read_bytes() == lines(EVENTS)


@pytest.mark.parametrize("option", ["--output", "--dead-letters"])
def test_a_name_that_promises_compression_is_refused_before_anything_is_charged(desk, option):
    desk.put("in.jsonl", lines(EVENTS))
    other = ("--output", "o") if option == "--dead-letters" else ()
    result = desk.call("--input", "in.jsonl", *other, option, "out.jsonl.GZ")
    assert result.exit_code == 2
    assert option in result.stderr
    assert "nothing is packed here; write it plain, and run gzip FILE" in result.stderr.replace("\n", " ")
    assert not (desk.folder / "out.jsonl.GZ").exists()
    assert not (desk.folder / "log.db").exists()


def test_a_run_that_fails_leaves_the_old_output_whole(desk):
    desk.put("in.jsonl", lines(EVENTS))
    expected = desk.run("in.jsonl")
    (desk.folder / "out.jsonl").chmod(0o640)
    desk.put("other.jsonl", lines(changed(x=lambda one: 100 - one["x"])))
    with pytest.raises(Exception, match="release"):
        desk.run("other.jsonl")
    assert (desk.folder / "out.jsonl").read_bytes() == expected
    assert not list(desk.folder.glob(".*.part"))
    # and one that ends in order replaces it, where a link points to, under its mode
    (desk.folder / "out.jsonl").rename(desk.folder / "target.jsonl")
    (desk.folder / "out.jsonl").symlink_to("target.jsonl")
    (desk.folder / "target.jsonl").write_bytes(b"old\n")
    assert desk.run("in.jsonl") == expected
    assert (desk.folder / "target.jsonl").read_bytes() == expected
    assert (desk.folder / "target.jsonl").stat().st_mode & 0o777 == 0o640
    assert desk.call("--input", "in.jsonl", "--output", "/dev/null").exit_code == 0


def test_an_end_without_an_event_that_counted_is_told_in_words(desk):
    desk.put("in.jsonl", lines(EVENTS))
    desk.run("in.jsonl")
    with Ledger.open(f"sqlite:///{desk.folder}/log.db") as ledger, ledger.database.write() as connection:
        connection.exec_driver_sql("UPDATE metric_version SET ended_at = '', input_digest = 'another'")
    message = desk.refused("in.jsonl", error=LedgerError)
    assert "ended without an event that counted, and with another input" in message


# ---------------------------------------------------------------- a long run


def opened_for(process: subprocess.Popen[bytes], fifo: Path) -> IO[bytes]:
    """The fifo, once the process reads it; where it has ended, nobody ever will."""
    while process.poll() is None:
        try:
            pipe = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:  # there is no reader yet
                raise
            time.sleep(0.01)
        else:
            os.set_blocking(pipe, True)
            return open(pipe, "wb")
    raise AssertionError(f"it ended with {process.wait()}: {process.stderr and process.stderr.read()!r}")


def test_a_run_that_is_told_to_stop_says_so_and_leaves_the_old_output(desk):
    desk.put("out.jsonl", b"old\n")
    fifo = desk.folder / "in.jsonl"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "shoal", "run", "shoal.toml", "--input", "in.jsonl", *OPTIONS]
    with subprocess.Popen(command, cwd=desk.folder, stderr=subprocess.PIPE) as process:
        with opened_for(process, fifo) as pipe:
            pipe.write(lines(EVENTS) * 10)  # more than a pipe holds: once it is written, the run reads
            status = None
            while status is None:  # again, for it may come just before the run waits for more
                process.send_signal(signal.SIGTERM)
                try:
                    status = process.wait(0.2)
                except subprocess.TimeoutExpired:
                    continue
        assert status == 128 + signal.SIGTERM
        assert process.stderr is not None
        assert b"stopped by SIGTERM" in process.stderr.read()
    assert (desk.folder / "out.jsonl").read_bytes() == b"old\n"


def test_progress_is_told_where_nobody_sees_a_bar(monkeypatch, capsys):
    from shoal.agents.cli import output

    moments = iter([0.0, 5.0, 10.0, 15.0, 25.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(moments))
    with output.progress("reading in.jsonl", 200) as advance:
        for done in (10, 20, 30, 40):
            advance(done)
    assert capsys.readouterr().err == "shoal: reading in.jsonl: 10 %\nshoal: reading in.jsonl: 20 %\n"


@pytest.mark.parametrize("name", ["in.csv", "in.jsonl"])
def test_the_length_of_a_value_does_not_decide_whether_a_file_is_read(desk, name):
    events = lines(EVENTS) if name == "in.jsonl" else table(EVENTS)
    desk.put(name, events.replace(str(EVENTS[7]["x"]).encode(), b"9" * (1 << 25), 1))
    assert len(desk.run(name).splitlines()) == 8


@pytest.mark.parametrize("option", ["--output", "--dead-letters"])
@pytest.mark.parametrize("place", ["", "no/out", ".", "o" * 300])
def test_an_output_that_cannot_be_written_charges_nothing(desk, option, place):
    desk.put("in.jsonl", lines(EVENTS))
    others = ["--output", "out.jsonl"] if option != "--output" else []
    refused = desk.call("--input", "in.jsonl", option, place, *others)
    assert isinstance(refused.exception, InputError), refused.exception
    assert desk.charged() == 0
    assert sorted(one.name for one in desk.folder.iterdir() if "out" in one.name) == []


def test_a_full_disk_is_told_as_what_it_is(desk):
    desk.put("in.jsonl", lines(EVENTS))
    full = desk.call("--input", "in.jsonl", "--output", "/dev/full")
    assert isinstance(full.exception, InputError)
    assert "No space left on device" in str(full.exception)
    assert len(desk.run("in.jsonl").splitlines()) == 8


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_stream_is_told_as_what_it_is(desk, closed):
    desk.put("in.jsonl", lines(EVENTS))
    source = "-" if closed == "<&-" else "in.jsonl"
    command = f'exec "$0" -m shoal run shoal.toml --input {source} --output - {closed}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable], cwd=desk.folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "is closed; name a file" in done.stderr
    assert desk.charged() == 0


def test_the_result_of_a_dry_run_is_on_stdout_as_json(desk):
    desk.put("in.jsonl", lines(EVENTS))
    assert json.loads(desk.call("--input", "in.jsonl", "--dry-run", "--output", "-", "--json").stdout)["events"] == 240


def test_an_input_that_is_still_empty_is_no_metrics_fault(desk):
    desk.put("in.jsonl", b"")
    said = desk.call("--input", "in.jsonl", *OPTIONS, "--open").stderr
    assert "there is no event in it yet" in said
    assert "metric" not in said
