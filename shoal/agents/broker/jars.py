"""Kafka's jars, installed once beside the interpreter and checked against a committed lock file.

    python -m shoal.agents.broker.jars             install what the lock names; instant when it is there already
    python -m shoal.agents.broker.jars --lock 4.3.0  resolve that version of Kafka and write its lock file

A lock file has one jar a line, in class path order: group:artifact:version and SHA-256. Only this module ever
downloads anything.
"""

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from shoal.models.errors import KafkaError, ShoalError
from shoal.models.extras import require

VERSION = "4.3.0"  # of Kafka; its lock file lies beside this module
ATTEMPTS = 3  # per jar: one broken connection should not fail an installation


class Jar(NamedTuple):
    """One line of a lock file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def filename(self) -> str:
        """Name of the file in the folder of jars."""
        return f"{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version} {self.sha256}"


def home(version: str = VERSION) -> Path:
    """Folder of an installed Kafka, inside the (virtual) environment that runs us."""
    return Path(sys.prefix) / "share" / "shoal" / f"kafka-{version}"


def remembered(version: str = VERSION) -> Path:
    """What Java remembers of a start of an installed Kafka, if it was rehearsed (rehearsal.py)."""
    return home(version).with_name(f"kafka-{version}.aot")


def lock_file(version: str = VERSION) -> Path:
    """The committed list of what a version of Kafka consists of."""
    return Path(__file__).with_name(f"kafka-{version}.lock")


def locked(version: str = VERSION) -> list[Jar]:
    """The jars of a version, in class path order."""
    return read_lock(lock_file(version))


def read_lock(path: Path) -> list[Jar]:
    """The jars that a lock file names, in class path order."""
    lines = path.read_text("ascii").splitlines()
    return [_parse(line) for line in lines if line and not line.startswith("#")]


def class_path(version: str = VERSION) -> str:
    """Java's class path of an installed Kafka; refuses when a jar is missing."""
    paths = [home(version) / jar.filename for jar in locked(version)]
    if not all(path.is_file() for path in paths):
        raise KafkaError(f"Kafka {version} is not installed; run: {sys.executable} -m shoal.agents.broker.jars")
    return os.pathsep.join(map(str, paths))


def install(version: str = VERSION) -> bool:
    """Download what is missing and check every byte; False when all of it was there already."""
    return place(locked(version), home(version), before=lambda: remembered(version).unlink(missing_ok=True))


def place(jars: Sequence[Jar], target: Path, *, before: Callable[[], None] = lambda: None) -> bool:
    """Download jars into a folder, and check every byte; False when all of them were there already.

    `before` is called when they are complete and the folder is about to be replaced.
    """
    if target.is_dir() and all(_matches(target / jar.filename, jar.sha256) for jar in jars):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    # In a folder of its own until complete: a broken installation never looks like a whole one.
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        libs = Path(scratch) / "libs"
        libs.mkdir()
        for jar in jars:
            _fetch(jar, Path(scratch), libs / jar.filename)
        shutil.rmtree(target, ignore_errors=True)
        before()  # what is remembered is of other jars
        libs.rename(target)
    return True


def lock(version: str) -> Path:
    """Resolve a version of Kafka with all it needs and write down what came."""
    import jgo  # an extra, and only an installation needs it

    artifacts = jgo.resolve(f"org.apache.kafka:kafka_2.13:{version}")
    # The adapter makes Kafka's log messages reach log4j. Resolved alone: its parent would change Kafka's own versions.
    log4j = next(a.version for a in artifacts if a.artifactId == "log4j-core")
    adapter = jgo.resolve(f"org.apache.logging.log4j:log4j-slf4j-impl:{log4j}")[:1]
    jars = [Jar(a.groupId, a.artifactId, a.version, _sha256(a.resolve())) for a in artifacts + adapter]
    path = lock_file(version)
    path.write_text("".join(f"{line}\n" for line in (f"# Apache Kafka {version}", *jars)), "ascii")
    return path


def _parse(line: str) -> Jar:
    coordinate, sha256 = line.split()
    group, artifact, version = coordinate.split(":")
    return Jar(group, artifact, version, sha256)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _matches(path: Path, sha256: str) -> bool:
    return path.is_file() and _sha256(path) == sha256


def _fetch(jar: Jar, scratch: Path, target: Path) -> None:
    from jgo.maven import MavenContext  # an extra, and only an installation needs it

    reason: object = "its SHA-256 is not the locked one"
    for attempt in range(ATTEMPTS):
        context = MavenContext(repo_cache=scratch / f"attempt-{attempt}", timeout=60)
        artifact = context.project(jar.group, jar.artifact).at_version(jar.version).artifact()
        try:
            path = artifact.resolve()
        except (OSError, RuntimeError) as error:  # requests' errors are OSErrors
            reason = type(error).__name__  # its text may name hosts and proxies
            continue
        if _matches(path, jar.sha256):
            path.rename(target)
            return
    raise KafkaError(f"cannot install {jar.group}:{jar.artifact}:{jar.version}: {reason}; try again")


def main(arguments: list[str] | None = None) -> int:
    """Install Kafka, or lock another version of it."""
    parser = argparse.ArgumentParser(
        prog="python -m shoal.agents.broker.jars", description="Install Apache Kafka's jars."
    )
    parser.add_argument("--lock", metavar="VERSION", help="resolve that version and write its lock file instead")
    options = parser.parse_args(arguments)
    try:
        require("an installation of Kafka", "demo")
        if options.lock:
            print(f"wrote {lock(options.lock)}", file=sys.stderr)
        else:
            state = "installed" if install() else "is there already"
            print(f"Apache Kafka {VERSION} {state} ({home()})", file=sys.stderr)
    except ShoalError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
