"""Who lacks an extra meets one line with the command that installs it, wherever that is, before anything is done."""

import sys
from pathlib import Path

import pytest

from shoal.agents.broker import jars
from shoal.agents.cli.main import main
from shoal.mechanisms.forecast.plan import NOT_PRIVATE
from shoal.models.extras import MODULES
from tests.support.feeds import report, snapshot

METRIC = """
[[metric]]
name = "speed"
topic = "trips"
user = "bus"
value = "speed"
time = "at"
statistic = "mean"
slot = "1h"
range = [0, 65]
epsilon = 1.0
max_contributions = 4
users = 400
"""
AUDIT = '[audit]\nurl = "{url}"\n[privacy]\nkey_file = "shoal.key"\nepsilon = 4.0\n'
SQLITE, POSTGRESQL = AUDIT.format(url="sqlite:///shoal.db"), AUDIT.format(url="postgresql://localhost/shoal")
CELLS = 'cell = { h3 = 8, lat = "lat", lon = "lon" }\nmax_groups = 4\n'

PLACES = [
    (("demo",), "demo", "shoal demo"),
    (("demo", "--geo"), "demo", "shoal demo"),
    (("broker",), "demo", "shoal broker"),
    (("map", "releases.jsonl"), "geo,plots", "shoal map"),
    (("simulate", "buses", "--users", "1", "--hours", "1"), "geo", "shoal simulate"),
    (("plan", "cells.toml", "--values", "events.jsonl"), "geo", "a metric by H3 cell"),
    (("check", "cells.toml"), "geo", "a metric by H3 cell"),
    (("run", "cells.toml", "--input", "events.jsonl", "--output", "-"), "geo", "a metric by H3 cell"),
    (("run", "plain.toml", "--input", "feed.pb", "--output", "-"), "geo", "feed.pb: a GTFS-realtime feed"),
    (("export", "--input", "releases.jsonl", "--output", "releases.parquet"), "arrow", "--format parquet"),
    (("check", "postgresql.toml"), "postgres", "[audit] url: PostgreSQL"),
    (("budget", "postgresql.toml"), "postgres", "[audit] url: PostgreSQL"),
    (("migrate", "postgresql.toml"), "postgres", "[audit] url: PostgreSQL"),
    (("audit", "verify", "postgresql.toml"), "postgres", "[audit] url: PostgreSQL"),
]


@pytest.fixture
def core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder with files, where no extra is installed."""
    monkeypatch.chdir(tmp_path)
    Path("plain.toml").write_text(SQLITE + METRIC)
    Path("cells.toml").write_text(SQLITE + METRIC.replace("max_contributions", "max_per_group") + CELLS)
    Path("postgresql.toml").write_text(POSTGRESQL + METRIC)
    Path("events.jsonl").write_text('{"bus": 1, "at": "2026-03-02T06:00:00Z", "speed": 9, "lat": 52.5, "lon": 13.4}\n')
    Path("feed.pb").write_bytes(snapshot([report("bus 1", 1_772_431_200, speed=9.0)]).SerializeToString())
    assert ends(monkeypatch, "key", "new", "shoal.key") is None
    capsys.readouterr()
    for modules in MODULES.values():
        for module in modules:
            monkeypatch.setitem(sys.modules, module, None)
    return tmp_path


def ends(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str | int | None:
    monkeypatch.setattr(sys, "argv", ["shoal", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or None


@pytest.mark.parametrize(("arguments", "extra", "what"), PLACES, ids=lambda part: " ".join(part[:2]))
def test_a_missing_extra_is_named_in_one_line(core, arguments, extra, what, monkeypatch, capsys):
    before = sorted(core.iterdir())
    assert ends(monkeypatch, *arguments) == 1
    said = capsys.readouterr()
    remarks = (f"shoal: {NOT_PRIVATE}", "shoal: warning: ")
    (line,) = [line for line in said.err.splitlines() if not line.startswith(remarks)]
    assert line.startswith(f"shoal: {what}")
    assert line.endswith(f"needs packages that are not installed: pip install 'shoal[{extra}]'")
    assert not said.out or arguments[0] == "check"  # which says the rest, too
    assert {path for path in core.iterdir() if path.suffix not in (".db", ".used")} <= set(before)


def test_what_needs_no_cell_needs_no_extra(core, monkeypatch, capsys):
    """The ledger can be read, and the error planned, of metrics whose events another machine reads."""
    assert ends(monkeypatch, "budget", "cells.toml") is None
    assert ends(monkeypatch, "plan", "cells.toml") is None


def test_an_installation_of_kafka_says_so_too(core, capsys):
    assert jars.main([]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("pip install 'shoal[demo]'")
