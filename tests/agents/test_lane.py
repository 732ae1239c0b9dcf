"""The kernel is used where it fits, and nobody who has not asked for it is stopped by one that does not."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson
import pytest
from typer.testing import CliRunner

from shoal import __version__
from shoal.agents import lane
from shoal.agents.cli.main import app
from shoal.agents.lane import INTERFACE, KERNEL, OFF, ON, lane_named, lane_of_environment, unknown_of_config
from shoal.models.errors import ConfigError
from tests.stream.simulation import config
from tests.support.desk import EVENTS, MEAN, OPTIONS, Desk, lines

ROOT = Path(__file__).parents[2]
NO_MEAN = {"algorithm": None, "users": None, "failure": None, "every": None}
SUM = NO_MEAN | {"statistic": "sum", "every": "10s", "life": "1h"}
SLOT = NO_MEAN | {"statistic": "mean", "slot": "10s"}
TWO_SIDED = SUM | {"relation": "add-remove", "start": "1970-01-01"}


def install(monkeypatch: pytest.MonkeyPatch, **said: Any) -> ModuleType:
    """A kernel that says this of itself."""
    module = ModuleType(lane.MODULE)
    vars(module).update(said)
    monkeypatch.setitem(sys.modules, lane.MODULE, module)
    return module


@pytest.fixture
def absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, lane.MODULE, None)
    monkeypatch.delenv(KERNEL, raising=False)


def test_a_kernel_that_fits_is_used_by_who_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    module = install(monkeypatch, VERSION=__version__, INTERFACE=INTERFACE)
    monkeypatch.delenv(KERNEL, raising=False)
    found = lane_of_environment()
    assert found.module is module
    assert found.fields() == {
        "lane": "kernel", "kernel": "used", "version": __version__, "interface": str(INTERFACE)
    }  # fmt: skip


def test_without_a_kernel_the_twin_runs(absent: None) -> None:
    found = lane_of_environment()
    assert found.fields() == {"lane": "twin", "kernel": "not installed", "version": "", "interface": ""}
    with pytest.raises(ConfigError, match="SHOAL_KERNEL is on, and the kernel is not installed; in a checkout"):
        lane_of_environment({KERNEL: ON})


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"VERSION": "0.0.9", "INTERFACE": INTERFACE}, "the kernel has version 0.0.9, and this is shoal"),
        ({"VERSION": __version__, "INTERFACE": INTERFACE + 1}, f"the kernel has interface {INTERFACE + 1}, and shoal"),
        ({"INTERFACE": INTERFACE}, "the kernel has version unknown, and this is shoal"),  # as before it told
        ({}, "the kernel has interface unknown, and shoal"),  # a folder of that name
    ],
)
def test_a_kernel_of_another_version_or_interface_is_refused(
    monkeypatch: pytest.MonkeyPatch, said: dict[str, Any], why: str
) -> None:
    install(monkeypatch, **said)
    found = lane_of_environment({})
    assert (found.state, found.name, found.module) == ("refused", "twin", None)
    assert found.why.startswith(why)
    assert "install the kernel of this version" in found.why
    with pytest.raises(ConfigError, match=f"SHOAL_KERNEL is on, and {why}"):
        lane_of_environment({KERNEL: ON})


def test_a_kernel_that_does_not_load_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "shoal_kernel.py").write_text("import shoal_kernel.native")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, lane.MODULE, raising=False)
    found = lane_of_environment({})
    assert (found.state, found.version) == ("refused", "")
    assert "does not load here" in found.why


def test_who_turns_it_off_has_the_twin_whatever_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, VERSION=__version__, INTERFACE=INTERFACE)
    assert lane_of_environment({KERNEL: OFF}).fields()["lane"] == "twin"
    with pytest.raises(ConfigError, match="SHOAL_KERNEL is yes; it can be on or off"):
        lane_of_environment({KERNEL: "yes"})


def test_an_audit_says_itself_who_takes_the_events_in(absent: None) -> None:
    assert lane_named("twin").name == "twin"
    with pytest.raises(ConfigError, match="--lane kernel is given, and the kernel is not installed"):
        lane_named("kernel")


@pytest.mark.parametrize("arguments", [("--lane", "kernel"), ("--lane", "kernel", "--from", "contributions")])
def test_what_has_no_events_has_no_lane(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    said = CliRunner().invoke(app, ["audit", "replay", str(tmp_path / "shoal.toml"), *arguments])
    assert said.exit_code == 2
    assert "the kernel takes in events: add --from events" in " ".join(said.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("metric", "found"),
    [
        ({}, {}),
        ({"algorithm": "sharp"}, {}),
        (SUM, {}),
        (TWO_SIDED, {}),
        (SLOT, {"m": "slot"}),
        (SLOT | {"cell": {"h3": 3, "lat": "lat", "lon": "lon"}, "max_groups": 2}, {"m": "cell"}),
        ({"value": ("x", "y"), "range": ((0, 1), (0, 1))}, {"m": "several values"}),
        (SUM | {"value": "x > 1", "range": None}, {"m": "a condition as its value"}),
        ({"algorithm": "sharp", "sigma": 3, "max_contributions": 16}, {"m": "sigma"}),
        ({"algorithm": "wishful", "prior": "0.5", "sigma": 3, "max_contributions": 16}, {"m": "sigma"}),
        ({"withheld": True}, {"m": "withheld"}),
        (SUM | {"statistic": "variance"}, {"m": 'statistic = "variance"'}),
        (TWO_SIDED | {"clip": "auto", "range": (0, 1000)}, {"m": "clip"}),
        (TWO_SIDED | {"statistic": "distribution", "bins": 8}, {"m": 'statistic = "distribution"'}),
    ],
)  # fmt: skip
def test_what_keeps_a_topic_on_the_twin_has_a_name(metric: dict[str, Any], found: dict[str, str]) -> None:
    cfg = config({"name": "m"} | metric)
    assert unknown_of_config(cfg) == {"events": found}


def test_another_partitioner_keeps_all_on_the_twin() -> None:
    cfg = config({"name": "m"})
    kafka = cfg.kafka.model_copy(update={"partitioner": "crc32"})
    assert unknown_of_config(cfg.model_copy(update={"kafka": kafka})) == {"events": {"": 'partitioner = "crc32"'}}


# ---------------------------------------------------------------- what commands say


def test_a_check_says_who_would_take_the_events_in(
    absent: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    desk = Desk(tmp_path)
    lacks = {"readings": {"lacks": {"level": "slot"}}}
    twin = 'readings: the twin, because the kernel does not support slot of metric "level"'

    def told() -> tuple[dict[str, Any], list[dict[str, str]], int]:
        ran = CliRunner().invoke(app, ["check", str(desk.folder / "shoal.toml"), "--json"])
        shown = orjson.loads(ran.stdout)
        (section,) = (one for one in shown["sections"] if one["name"] == "kernel")
        return shown["kernel"], section["lines"], ran.exit_code

    fields, said, status = told()
    assert (fields["lane"], fields["kernel"], fields["topics"], status) == ("twin", "not installed", lacks, 0)
    assert [line["text"] for line in said] == [
        "the twin runs, with the same releases: the kernel is not installed", twin
    ]  # fmt: skip
    # of another version
    install(monkeypatch, VERSION="0.0.9", INTERFACE=INTERFACE)
    fields, said, status = told()
    assert (fields["lane"], fields["kernel"], fields["version"], status) == ("twin", "refused", "0.0.9", 0)
    assert said[0]["state"] == "warning"
    assert said[0]["text"] == f"the twin runs: the kernel has version 0.0.9, and this is shoal {__version__}"
    assert said[0]["remedy"].startswith("install the kernel of this version")
    # and where it is asked for
    monkeypatch.setenv(KERNEL, ON)
    ran = CliRunner().invoke(app, ["check", str(desk.folder / "shoal.toml")])
    assert isinstance(ran.exception, ConfigError)
    assert "failed       SHOAL_KERNEL is on, and the kernel has version 0.0.9" in ran.stdout


def test_a_file_run_says_that_a_kernel_is_refused_and_charges_nothing_where_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, VERSION="0.0.9", INTERFACE=INTERFACE)
    desk = Desk(tmp_path)
    desk.say(MEAN)
    desk.put("in.jsonl", lines(EVENTS))
    monkeypatch.setenv(KERNEL, ON)
    with pytest.raises(ConfigError, match="SHOAL_KERNEL is on"):
        desk.run("in.jsonl")
    assert not (desk.folder / "log.db").exists()
    monkeypatch.delenv(KERNEL)
    said = desk.call("--input", "in.jsonl", *OPTIONS)
    assert said.exit_code == 0
    assert "shoal: warning: the kernel has version 0.0.9" in said.stderr


def test_a_kernel_of_another_version_that_is_really_installed_leaves_all_to_the_twin(tmp_path: Path) -> None:
    # given a package of the kernel's name and of another version, which would fail if anybody used it
    package = tmp_path / "packages" / lane.MODULE
    package.mkdir(parents=True)
    package.joinpath("__init__.py").write_text(f'VERSION, INTERFACE = "0.0.9", {INTERFACE}\n')
    folder = tmp_path / "desk"
    folder.mkdir()
    desk = Desk(folder)
    desk.say(MEAN)
    desk.put("in.jsonl", lines(EVENTS))

    def ran(name: str, **variables: str) -> subprocess.CompletedProcess[str]:
        copy = shutil.copytree(folder, tmp_path / name)
        environment = {name: value for name, value in os.environ.items() if name != KERNEL} | variables
        command = [sys.executable, "-m", "shoal", "run", "shoal.toml", "--input", "in.jsonl", "--output", "-"]
        return subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)

    # when a process of its own runs a file
    other = ran("other", PYTHONPATH=str(package.parent))
    # then it says so, and its releases are those of the twin
    assert (other.returncode, other.stderr.count("warning: the kernel has version 0.0.9")) == (0, 1), other.stderr
    assert other.stdout
    assert other.stdout == ran("twin", **{KERNEL: OFF}).stdout
    # and who asks for the kernel is refused
    asked = ran("asked", PYTHONPATH=str(package.parent), **{KERNEL: ON})
    assert asked.returncode == 1
    assert "SHOAL_KERNEL is on, and the kernel has version 0.0.9" in asked.stderr


# ---------------------------------------------------------------- two packages, one version


def test_shoal_and_its_kernel_have_one_version_and_one_interface() -> None:
    crate = tomllib.loads((ROOT / "kernel" / "Cargo.toml").read_text())["package"]
    locked = tomllib.loads((ROOT / "kernel" / "Cargo.lock").read_text())["package"]
    assert crate["version"] == __version__
    assert [one["version"] for one in locked if one["name"] == crate["name"]] == [__version__]
    said = re.findall(r"^const INTERFACE: u32 = (\d+);", (ROOT / "kernel/src/python/mod.rs").read_text(), re.MULTILINE)
    assert said == [str(INTERFACE)]
