"""Kafka is installed from a lock file, once."""

import hashlib
import shutil
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from jgo.maven import _core as maven

from shoal.agents.broker import jars
from shoal.models.errors import KafkaError


def test_every_locked_jar_is_named_once_and_has_a_checksum() -> None:
    locked = jars.locked()
    assert len({(jar.group, jar.artifact) for jar in locked}) == len(locked)
    assert all(len(bytes.fromhex(jar.sha256)) == 32 for jar in locked)
    kafka = {jar.version for jar in locked if jar.group == "org.apache.kafka"}
    assert kafka == {jars.VERSION}  # no part of another version, which would fail when first called


def test_a_second_installation_does_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    before = jars.home().stat()
    assert jars.main([]) == 0
    assert "is there already" in capsys.readouterr().err
    assert jars.home().stat() == before


def test_a_broker_without_jars_says_how_to_install_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(KafkaError, match=r"not installed; run: .* -m shoal\.agents\.broker\.jars"):
        jars.class_path()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its name in the base class
        """Nothing: a test's output is its result."""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository of jars on this machine, an environment without any, and a lock of two."""
    shelf = tmp_path / "shelf"
    jars_ = [jar for jar in jars.locked() if jar.artifact in ("argparse4j", "jspecify")]
    for jar in jars_:
        folder = shelf / jar.group.replace(".", "/") / jar.artifact / jar.version
        folder.mkdir(parents=True)
        content = shutil.copy(jars.home() / jar.filename, folder)
        digest = hashlib.sha1(Path(content).read_bytes()).hexdigest()  # what jgo compares a download with
        (folder / f"{jar.filename}.sha1").write_text(digest)
    lock = tmp_path / "two.lock"
    lock.write_text("# two\n" + "".join(f"{jar}\n" for jar in jars_))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    monkeypatch.setattr(jars, "lock_file", lambda version=jars.VERSION: lock)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=shelf)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setattr(maven, "DEFAULT_REMOTE_REPOS", {"shelf": f"http://127.0.0.1:{server.server_port}"})
        yield shelf
        server.shutdown()
        thread.join()


def test_an_installation_has_exactly_what_is_locked(shelf: Path) -> None:
    assert jars.install()
    assert {path.name for path in jars.home().iterdir()} == {jar.filename for jar in jars.locked()}
    assert jars.class_path().count(".jar") == 2
    assert not jars.install()


def test_a_damaged_installation_is_mended(shelf: Path) -> None:
    jars.install()
    damaged, missing = (jars.home() / jar.filename for jar in jars.locked())
    damaged.write_bytes(b"half a jar")
    missing.unlink()
    assert jars.install()
    assert not jars.install()


def test_a_jar_that_is_not_the_locked_one_is_refused(shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # given a repository that serves another jar under the name, with a checksum that fits it
    (jar,) = shelf.rglob("jspecify*.jar")
    jar.write_bytes(b"something else")
    jar.with_name(f"{jar.name}.sha1").write_text(hashlib.sha1(b"something else").hexdigest())
    # then nothing is installed, and the error names the jar
    assert jars.main([]) == 1
    error = capsys.readouterr().err
    assert "cannot install org.jspecify:jspecify:" in error
    assert "SHA-256" in error
    assert not jars.home().exists()


def test_a_repository_without_the_jar_is_an_error(shelf: Path) -> None:
    shutil.rmtree(shelf / "org")
    with pytest.raises(KafkaError, match="cannot install org.jspecify:jspecify:.*; try again"):
        jars.install()
