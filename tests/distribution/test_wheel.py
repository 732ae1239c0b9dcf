"""The wheel alone, in an environment that knows nothing of this checkout: it works, and it is small and free."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from distribution import ROOT
from distribution.environment import Environment, build_wheel
from distribution.licences import complaint
from shoal.models.extras import MODULES

pytestmark = pytest.mark.long

MOST_MEGABYTES = 200
NOT_OURS = {module for modules in MODULES.values() for module in modules}
NO_KAFKA = {"aiokafka", "faust", "mode"}
NO_DRAWING = {"matplotlib", "PIL"}

# Runs a command of shoal, and writes down which modules that took.
RUN = """
import atexit, sys
from shoal.agents.cli.entry import main
atexit.register(lambda: open("modules", "w").write("\\n".join(sys.modules)))
sys.argv[0] = "shoal"
main()
"""

# In this order, each in the folder that the ones before it left. What no extra is needed for belongs here.
COMMANDS = {
    "check": ("check", "visits.toml", "--json"),
    "plan": ("plan", "visits.toml", "--users", "300", "--json"),
    "run": ("run", "visits.toml", "--input", "visits.jsonl", "--output", "spending.jsonl", "--json"),
    "budget": ("budget", "visits.toml", "--json"),
    "audit": ("audit", "verify", "visits.toml", "--json"),
    "dashboard": ("dashboard", "visits.toml", "--input", "spending.jsonl", "--out", "page.html", "--json"),
}
LACKING = {
    ("demo",): "demo",
    ("broker",): "demo",
    ("map", "spending.jsonl"): "geo,plots",
    ("simulate", "buses", "--users", "1", "--hours", "1"): "geo",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel and what it needs, nothing else."""
    return Environment.with_wheel(tmp_path_factory.mktemp("clean") / "environment", wheel)


@pytest.fixture(scope="module")
def folder(clean: Environment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events, a configuration and a key that the environment made."""
    made = tmp_path_factory.mktemp("visits")
    for name in ("visits.toml", "visits.jsonl"):
        shutil.copy(ROOT / "examples" / name, made)
    clean.run(str(clean.shoal), "key", "new", "visits.key", cwd=made)
    return made


@pytest.fixture(scope="module")
def outcomes(clean: Environment, folder: Path) -> dict[str, tuple[dict[str, object], set[str]]]:
    """What each command printed, and which modules it took."""
    done = {}
    for name, arguments in COMMANDS.items():
        printed = clean.run(str(clean.python), "-c", RUN, *arguments, cwd=folder)
        done[name] = orjson.loads(printed), set((folder / "modules").read_text().split())
    return done


def test_it_is_the_wheel_that_is_installed(clean):
    where = clean.run(str(clean.python), "-c", "import shoal; print(shoal.__file__)")
    assert Path(where.strip()).is_relative_to(clean.site_packages)


def test_every_command_works(outcomes, folder):
    printed = {name: fields for name, (fields, _) in outcomes.items()}
    assert [one["metric"] for one in printed["plan"]["metrics"]] == ["spending"]
    assert printed["check"]["warnings"]
    # There is no kernel here to be imported: what works, the twin does.
    assert (printed["check"]["kernel"]["lane"], printed["check"]["kernel"]["kernel"]) == ("twin", "not installed")
    assert printed["run"]["releases"] == 14
    assert printed["budget"]
    assert printed["audit"]["ok"] is True
    assert (folder / printed["dashboard"]["page"]).read_text().startswith("<!doctype html>")


def test_the_releases_are_those_of_the_checkout(outcomes, folder, tmp_path):
    for name in ("visits.toml", "visits.jsonl", "visits.key"):
        shutil.copy(folder / name, tmp_path)
    run = [sys.executable, "-m", "shoal", *COMMANDS["run"]]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(run, cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert (tmp_path / "spending.jsonl").read_bytes() == (folder / "spending.jsonl").read_bytes()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_nothing_of_an_extra_and_nothing_of_kafka(outcomes, name):
    _, modules = outcomes[name]
    assert "shoal.agents.cli.main" in modules
    assert not modules & (NOT_OURS | NO_DRAWING | NO_KAFKA)


def test_only_a_migration_that_is_due_takes_alembic(outcomes):
    # for want of a log `check` looks into an empty one in memory, and then `run` makes the log
    assert [name for name, (_, modules) in outcomes.items() if "alembic" in modules] == ["check", "run"]


@pytest.mark.parametrize(("arguments", "extra"), LACKING.items(), ids=lambda part: part[0] if part else None)
def test_what_needs_an_extra_says_which(clean, outcomes, folder, arguments, extra):
    with pytest.raises(RuntimeError) as refused:
        clean.run(str(clean.shoal), *arguments, cwd=folder)
    _, *said = str(refused.value).splitlines()
    assert len(said) == 1
    assert said[0].endswith(f"pip install 'shoal[{extra}]'")


def test_it_is_small(clean):
    largest = {name: round(size, 1) for name, size in list(clean.by_package().items())[:8]}
    assert clean.megabytes() <= MOST_MEGABYTES, largest


def test_no_package_is_under_a_licence_of_gnu(clean):
    assert {"shoal", "numpy", "faust-streaming"} <= {package.name for package in clean.packages}
    assert [each for each in map(complaint, clean.packages) if each] == []
