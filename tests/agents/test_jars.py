"""Kafka is installed from a lock file, once."""

import sys
from pathlib import Path

import pytest

from shoal.agents import jars
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
    with pytest.raises(KafkaError, match=r"not installed; run: .* -m shoal\.agents\.jars"):
        jars.class_path()
