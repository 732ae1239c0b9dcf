"""No command replaces a file that must survive it: key, configuration, audit log or input, under any name or link."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from shoal.agents.audit import key_file
from shoal.agents.audit.ledger import Ledger
from shoal.agents.cli.main import app
from shoal.models.errors import InputError
from tests.support.desk import CONFIG, EVENTS, Desk, lines
from tests.support.releases import CELLS, release
from tests.support.releases import lines as release_lines

PAGE = "label shoal.toml --html"
BUSES = "simulate buses --users 1 --hours 0.1 --out"
WRITERS = {  # what is typed, and what is read besides the deployment
    PAGE: None,
    "label shoal.toml --registry": None,
    "label shoal.toml --verify events.jsonl --html": "events.jsonl",
    "export shoal.toml --format jsonl --output": None,
    "export shoal.toml --input releases.jsonl --output": "releases.jsonl",
    "dashboard shoal.toml --input releases.jsonl --out": "releases.jsonl",
    "dead-letters shoal.toml --reason late --out": None,
}
MEAN = CONFIG.replace('slot = "1h"', 'every = "1h"\nusers = 20')
DEPLOYMENT = ("shoal.toml", "shoal.key", "shoal.key.used", "log.db", "log.db-wal", "log.db-shm", "log.db-journal")


@pytest.fixture
def shop(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A deployment, with events and releases beside it."""
    monkeypatch.chdir(desk.folder)
    desk.put("events.jsonl", lines(EVENTS))
    desk.put("releases.jsonl", release_lines([release("basket", day, 35.0) for day in range(1, 4)]))
    Ledger.open("sqlite:///log.db").close()
    for name in DEPLOYMENT:
        Path(name).touch()
    return desk


def shoal(typed: str, *more: str) -> Result:
    return CliRunner().invoke(app, [*typed.split(), *more])


def refusal(result: Result) -> str:
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symlink", "hard link"])
@pytest.mark.parametrize(("typed", "source"), WRITERS.items())
def test_what_a_command_writes_is_nothing_that_must_survive(
    shop: Desk, typed: str, source: str | None, link: Callable[[str, str], None]
) -> None:
    for kept in filter(None, (source, *DEPLOYMENT)):
        # given a file of the deployment, or an input, under another name
        before = Path(kept).read_bytes()
        link(kept, f"{kept}.png")
        # when a command is told to write there
        said = refusal(shoal(typed, f"{kept}.png"))
        # then it says which of its options is which file, and changes nothing
        assert said.startswith(f"{typed.split()[-1]} and ")
        assert "are one file; write to another one, for this one would be lost" in said
        assert Path(kept).read_bytes() == before


@pytest.mark.parametrize("typed", WRITERS)
def test_nor_is_it_under_its_own_name(shop: Desk, typed: str) -> None:
    for kept in DEPLOYMENT:
        assert "are one file" in refusal(shoal(typed, f"../{shop.folder.name}/{kept}"))


def test_what_is_known_without_a_configuration_is_kept_too(shop: Desk) -> None:
    """A file of releases and a log's URL are inputs, a map's names are outputs, and secrets of clients are files."""
    read = "export --input releases.jsonl --output"
    assert "--output and the input" in refusal(shoal(read, "./releases.jsonl"))
    assert "--out and the input" in refusal(shoal("dashboard --input releases.jsonl --out", "./releases.jsonl"))
    assert "--output and the audit log" in refusal(shoal("export --log sqlite:///log.db --output", "log.db-wal"))
    Path("map.html").symlink_to("releases.jsonl")
    assert "map.html and the input" in refusal(shoal("map releases.jsonl"))
    Path("shoal.toml").write_text(CONFIG.replace("[audit]", '[kafka]\nssl_keyfile = "client.pem"\n[audit]'))
    assert "--html and ssl_keyfile are one file" in refusal(shoal(PAGE, "client.pem"))


def test_two_outputs_of_a_label_are_two_files(shop: Desk) -> None:
    assert "--html and --registry are one file" in refusal(shoal(f"{PAGE} label.yaml --registry ./label.yaml"))
    assert shoal(f"{PAGE} label.html --registry label.yaml").exit_code == 0
    assert shoal(f"{PAGE} label.html --registry label.yaml").exit_code == 0, "its own outputs are made anew"


@pytest.mark.parametrize("typed", [BUSES, "export --input releases.jsonl --output"])
def test_who_knows_of_no_deployment_keeps_what_looks_like_one(shop: Desk, typed: str) -> None:
    # given another deployment's key and log, of which one is behind a link
    key_file.new(Path("other.key"))
    Ledger.open("sqlite:///other.db").close()
    Path("link").symlink_to("other.key")
    before = {name: Path(name).read_bytes() for name in ("other.key", "other.db")}
    # then neither is replaced, and an ordinary file is
    assert "link: holds a secret key" in refusal(shoal(typed, "link"))
    assert "other.db: is an SQLite database" in refusal(shoal(typed, "other.db"))
    assert {name: Path(name).read_bytes() for name in before} == before
    Path("out.jsonl").write_text("old\n")
    assert shoal(typed, "out.jsonl").exit_code == 0
    assert Path("out.jsonl").read_text() != "old\n"


@pytest.mark.parametrize(
    "typed",
    [
        BUSES,
        "dashboard --input releases.jsonl --out",
        "dead-letters shoal.toml --reason late --out",
        PAGE,
        "label shoal.toml --registry",
    ],
)
def test_a_name_that_promises_compression_is_refused(shop: Desk, typed: str) -> None:
    result = shoal(typed, "out.gz")
    assert result.exit_code == 2
    assert f"{typed.split()[-1]}: nothing is packed here" in result.stderr
    assert not Path("out.gz").exists()


@pytest.mark.slow
def test_a_map_is_no_key_behind_a_link_and_replaces_old_ones_when_it_is_whole(shop: Desk) -> None:
    # given releases by place, a link to a key where one map goes, and an old one where the other goes
    Path("places.jsonl").write_bytes(release_lines([release("speed", 1, 30.0, group=CELLS[0])]))
    key_file.new(Path("other.key"))
    secret = Path("other.key").read_bytes()
    Path("map.html").symlink_to("other.key")
    Path("map.png").write_text("old")
    os.link("map.png", "second")
    # when maps are drawn, then the key is kept, and nothing is left of what was begun
    assert "map.html: holds a secret key" in refusal(shoal("map places.jsonl"))
    assert (Path("other.key").read_bytes(), Path("map.png").read_text()) == (secret, "old")
    assert not list(shop.folder.glob(".*.part"))
    # and without the link both are new files
    Path("map.html").unlink()
    assert shoal("map places.jsonl").exit_code == 0
    assert Path("map.png").read_bytes().startswith(b"\x89PNG")
    assert Path("second").read_text() == "old"
