"""The embedded broker is a real Kafka: transactions, crashes, and errors that say what to do."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.agents.broker import jars
from shoal.agents.broker.process import FREE_PORTS, Broker, free_port
from shoal.models.errors import KafkaError
from tests.support.kafka import Kafka, Record

pytestmark = pytest.mark.kafka
ENDS = 120  # seconds until a process has surely ended, on a machine however busy

MAY_1997 = 862444800000  # milliseconds
FOREGROUND = "import sys, typer; from shoal.agents.cli.commands.kafka import broker; sys.exit(typer.run(broker))"


def gone(pid: int) -> bool:
    """Whether a process ends in time (a zombie has ended)."""
    end = time.monotonic() + ENDS
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def as_from_a_terminal() -> None:
    """Ctrl-C reaches the process, also where these tests run in the background of a shell that had it ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def serve(port: int, data: Path) -> subprocess.Popen[str]:
    """`shoal broker` in a process of its own, in a process group of its own, ready."""
    command = [sys.executable, "-c", FOREGROUND, "--port", str(port), "--data", str(data)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=as_from_a_terminal
    )
    assert process.stdout is not None
    with process.stdout:
        assert f"127.0.0.1:{port}" in process.stdout.readline()
    return process


def java_of(process: subprocess.Popen[str]) -> int:
    """The one child of a broker in the foreground, which must be in its process group."""
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    (child,) = [int(pid) for children in tasks for pid in children.read_text().split()]
    assert os.getpgid(child) == process.pid
    return child


def test_a_consumer_sees_committed_transactions_only(kafka: Kafka) -> None:
    # given one transaction that commits, and one that fails half way
    topic = kafka.create_topic(kafka.name("purchases"), partitions=3)
    kafka.produce(topic, [Record(b"ann", b"1"), Record(b"bob", b"2")], transactional_id=kafka.name("tx"))

    def failing() -> Iterator[Record]:
        yield Record(b"eve", b"3")
        raise RuntimeError("no more records")

    with pytest.raises(RuntimeError, match="no more records"):
        kafka.produce(topic, failing(), transactional_id=kafka.name("tx"))
    # then the first is all there is
    assert {(r.key, r.value) for r in kafka.read_committed(topic)} == {(b"ann", b"1"), (b"bob", b"2")}


def test_old_records_are_kept(kafka: Kafka) -> None:
    """Kafka deletes by timestamp: with its default of a week, a history of 1997 would go as it comes."""
    topic = kafka.create_topic(kafka.name("purchases"))
    kafka.produce(topic, [Record(b"ann", b"1", MAY_1997)])
    assert kafka.topic_config(topic)["retention.ms"] == "-1"
    assert [r.timestamp for r in kafka.read_committed(topic)] == [MAY_1997]


def test_a_killed_broker_comes_back_with_all_it_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Kafka(data=tmp_path / "kafka") as kafka:
        # given a committed transaction
        bootstrap, topic = kafka.bootstrap, kafka.create_topic("purchases")
        kafka.produce(topic, [Record(b"ann", b"1")], transactional_id="tx")
        # when the broker is killed, and started again
        java = kafka.pid
        assert java is not None
        kafka.kill()
        assert gone(java)
        assert kafka.pid is None
        kafka.start()
        # then it is where it was, and has what it had; the next transaction goes on
        assert kafka.bootstrap == bootstrap
        kafka.produce(topic, [Record(b"ann", b"2")], transactional_id="tx")
        assert [r.value for r in kafka.read_committed(topic)] == [b"1", b"2"]
    # and a new broker on the same data has it too, whatever Java remembers of other starts
    memory = tmp_path / "memory"
    memory.write_bytes(b"of another Java")
    monkeypatch.setattr(jars, "remembered", lambda: memory)
    with Kafka(data=tmp_path / "kafka") as again:
        assert [r.value for r in again.read_committed(topic)] == [b"1", b"2"]


def test_free_ports_are_not_those_of_outgoing_connections(kafka: Kafka) -> None:
    first, _ = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    assert first >= FREE_PORTS.stop
    assert kafka.port in FREE_PORTS


def test_a_taken_port_is_an_error_that_says_what_to_do(kafka: Kafka, tmp_path: Path) -> None:
    with pytest.raises(KafkaError, match=rf"port {kafka.port} is taken; .* --port"):
        Broker(kafka.port, tmp_path).start()


def test_starting_a_broker_that_runs_changes_nothing(kafka: Kafka) -> None:
    java = kafka.pid
    kafka.start()
    assert kafka.pid == java


def test_a_broker_can_be_stopped_twice(tmp_path: Path) -> None:
    broker = Broker(data=tmp_path)
    broker.stop()
    broker.kill()
    assert broker.pid is None


def test_two_brokers_never_share_a_folder(kafka: Kafka) -> None:
    with pytest.raises(KafkaError, match="another Kafka uses this folder; .* --data"):
        Broker(data=kafka.data).start()
    assert kafka.pid  # and the first is none the worse


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(KafkaError, match="cannot keep Kafka's data here"):
        Broker(data=tmp_path / "file" / "kafka").start()


def test_a_folder_of_any_name_holds_the_data(tmp_path: Path) -> None:
    """Where Kafka reads another path out of its settings it writes beside the folder, and the next start fails."""
    data = tmp_path / "José, 100 %" / "back\\slash"
    for _ in range(2):
        with Broker(data=data):
            assert (data / "log" / "meta.properties").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["José, 100 %"]
    assert [path.name for path in data.parent.iterdir()] == ["back\\slash"]


def test_a_folder_that_java_cannot_name_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode("café".encode("latin-1"))
    with pytest.raises(KafkaError, match="whose name is not UTF-8; rename it"):
        Broker(data=folder).start()
    assert not folder.exists()


def test_storage_that_cannot_be_formatted_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    with pytest.raises(KafkaError, match="cannot format its storage; its log says: .*Not a directory; more is in"):
        Broker(data=tmp_path).start()


def test_a_start_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    # given storage whose format is not Kafka's
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "meta.properties").write_text("version=99\n")
    broker = Broker(data=tmp_path)
    with (
        pytest.raises(KafkaError, match="its log says: .*[Ee]xception.*; more is in " + re.escape(str(broker.log))),
        broker,
    ):
        pytest.fail("it must not start")
    assert broker.pid is None
    assert broker.log.read_text()


@pytest.mark.long
def test_the_command_serves_until_sigterm(tmp_path: Path) -> None:
    process = serve(free_port(), tmp_path)
    java = java_of(process)
    process.terminate()
    assert process.wait(ENDS) == 0
    assert gone(java)


def test_ctrl_c_stops_the_command_cleanly(tmp_path: Path) -> None:
    process = serve(free_port(), tmp_path)
    java = java_of(process)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to the whole group
    assert process.wait(ENDS) == 0
    assert gone(java)


def test_java_does_not_outlive_a_killed_command(tmp_path: Path) -> None:
    process = serve(free_port(), tmp_path)
    java = java_of(process)
    process.kill()
    process.wait(ENDS)
    assert gone(java)


def test_the_command_ends_when_java_does(tmp_path: Path) -> None:
    process = serve(free_port(), tmp_path)
    os.kill(java_of(process), signal.SIGKILL)
    assert process.wait(ENDS) == 1


def test_a_start_that_takes_too_long_is_given_up_and_told_of_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.agents.broker.process.SAY_EVERY", 0.0)
    told: list[float] = []
    broker = Broker(data=tmp_path / "data", start_limit=0.1, on_wait=told.append)
    with pytest.raises(KafkaError, match=r"did not start within 0 s; .* choose a longer --start-limit"):
        broker.start()
    assert told
    assert broker.pid is None
