"""What Java remembers of a start makes the next one faster, and nothing depends on it."""

from pathlib import Path

import pytest

from shoal.agents.broker import jars, process, rehearsal

pytestmark = pytest.mark.kafka


@pytest.mark.long  # two starts of Kafka and all that Java writes, for what an installation does once
def test_a_start_is_remembered_and_java_takes_what_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jars, "remembered", lambda: tmp_path / "memory")
    # when a start is rehearsed, then only once
    assert rehearsal.rehearse()
    assert [path.name for path in tmp_path.iterdir()] == ["memory"]
    assert rehearsal.main() == 0
    assert "was rehearsed already" in capsys.readouterr().err
    # and a broker starts by it, also where Java is told to refuse what does not fit
    monkeypatch.setattr(process, "JAVA_OPTIONS", (*process.JAVA_OPTIONS, "-XX:AOTMode=on"))
    with process.Broker() as broker:
        assert broker.pid


def test_a_rehearsal_that_fails_is_told_and_does_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jars, "remembered", lambda: tmp_path / "memory")
    monkeypatch.setattr(process, "JAVA_OPTIONS", ("-XX:+NoSuchOption",))
    assert rehearsal.main() == 0
    assert "was not rehearsed, and will take longer: " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
