"""`shoal key new`, `shoal migrate` and `shoal budget`, as a script sees them."""

import json
import os
import pty
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from shoal.agents.audit import key_file
from shoal.agents.audit.ledger import Ledger
from shoal.agents.cli.commands import audit, budget, key
from shoal.models.errors import KeyFileError, LedgerError
from shoal.models.version import VersionId
from tests.agents.audit.audit_examples import register, version

CONFIG = """
[audit]
url = "{url}"
[privacy]
epsilon = {epsilon}
delta = {delta}
[[metric]]
name = "basket"
topic = "purchases"
user = "customer"
value = "amount"
statistic = "mean"
algorithm = "full"
range = [0, 200]
epsilon = 0.1
max_contributions = 64
users = 1000
every = "1h"
"""


@cache
def commands() -> typer.Typer:
    app = typer.Typer()
    app.command("new")(key.new)
    app.command("migrate")(audit.migrate)
    app.command("budget")(budget.budget)
    return app


def shoal(*arguments: object) -> Result:
    return CliRunner().invoke(commands(), [str(one) for one in arguments])


@pytest.fixture
def config(tmp_path: Path, database_url: str) -> Path:
    return write(tmp_path / "shoal.toml", database_url, "0.3")


def write(path: Path, url: str, epsilon: str, delta: str = "0") -> Path:
    path.write_text(CONFIG.format(url=url, epsilon=epsilon, delta=delta))
    return path


def test_a_new_key_is_named_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "shoal.key"
    said = shoal("new", file, "--json").stdout
    made = key_file.read(file)
    assert json.loads(said) == {"file": str(file), "fingerprint": made.fingerprint}
    assert made.secret.hex() not in said
    assert isinstance(shoal("new", file).exception, KeyFileError)
    assert shoal("new", tmp_path / "other.key").stdout.startswith(f"{tmp_path / 'other.key'}: new key ")


@pytest.mark.parametrize("name", ["", ".", "/", ".."])
def test_a_key_without_a_name_of_its_own_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    done = shoal("new", name)
    assert isinstance(done.exception, KeyFileError)
    assert "name a file, as in: shoal key new shoal.key" in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_migrate_makes_the_log_and_may_be_repeated(config: Path, database_url: str) -> None:
    first, second = shoal("migrate", config, "--json"), shoal("migrate", config)
    with Ledger.open(database_url) as ledger:
        backend = ledger.database.url.get_backend_name()
        assert json.loads(first.stdout) == {"log": ledger.log_id, "database": backend}
        assert second.stdout == f"audit log {ledger.log_id}: schema up to date\n"


def test_the_budget_of_a_new_log_is_that_of_the_configuration(config: Path) -> None:
    shoal("migrate", config)
    assert shoal("budget", config).stdout == "budget   epsilon 0.3 per person, for ever\nleft     epsilon 0.3\n"


def test_the_budget_is_shown_exactly(config: Path, database_url: str) -> None:
    # given charges that no float adds up, one of them of a version out of use
    with Ledger.open(database_url, migrate=True) as ledger:
        versions = [version(epsilon="0.1"), version("visits", epsilon="0.1"), version("third", epsilon="1/30")]
        register(ledger, *versions, budget_epsilon=Fraction("0.3"))
        ledger.of("shoal").retire(VersionId("shoal", "visits", 1))
    # then a person reads it in lines
    assert shoal("budget", config).stdout.splitlines() == [
        "budget   epsilon 0.3 per person, for ever",
        "charged  epsilon 0.1 by shoal: basket version 1",
        "charged  epsilon 1/30 by shoal: third version 1",
        "charged  epsilon 0.1 by shoal: visits version 1 (retired)",
        "left     epsilon 1/15",
    ]
    # and a program in numbers
    said = json.loads(shoal("budget", config, "--json").stdout, parse_float=Decimal)
    assert (said["unit"], said["epsilon"], said["delta"]) == ("user", Decimal("0.3"), 0)
    assert said["charged"] == {"epsilon": "7/30", "delta": 0}
    assert said["charges"][0] == {
        "app": "shoal", "metric": "basket", "version": 1, "state": "active", "epsilon": Decimal("0.1"), "delta": 0,
    }  # fmt: skip


def test_raising_is_explicit(config: Path, database_url: str) -> None:
    with Ledger.open(database_url, migrate=True) as ledger:
        register(ledger, version(epsilon="0.1"), budget_epsilon=Fraction("0.3"))
    # when the configuration asks for more, showing the budget changes nothing
    write(config, database_url, "0.5", "0.000001")
    assert "left     epsilon 0.2\n" in shoal("budget", config).stdout
    # and raising it does
    assert "left     epsilon 0.4, delta 0.000001\n" in shoal("budget", config, "--raise").stdout
    write(config, database_url, "0.4")
    assert isinstance(shoal("budget", config, "--raise").exception, LedgerError)


MEANS = (
    "shoal: the budget rises from epsilon = 0.3 to epsilon = 7, delta = 0.000001 per person, for ever. If all of it is "
    "used, what one person did changes the probability of anything that can be seen by a factor of 1100 instead of "
    "1.35; someone who thought something about it 10 % likely could come to be all but certain of it instead of "
    "thinking it at most 13.1 % likely\n"
)


def test_raising_says_what_it_means_to_those_in_it(config: Path, database_url: str) -> None:
    with Ledger.open(database_url, migrate=True) as ledger:
        register(ledger, version(epsilon="0.1"), budget_epsilon=Fraction("0.3"))
    # when a script raises the budget, then it is told and not asked
    write(config, database_url, "7", "0.000001")
    done = shoal("budget", config, "--raise", "--json")
    assert (done.exit_code, done.stderr, json.loads(done.stdout)["epsilon"]) == (0, MEANS, 7)
    # and the same once more weakens nothing, and says so
    assert "nothing to raise" in shoal("budget", config, "--raise").stderr


# A terminal's session: `shoal budget --raise` until it is told yes, and then once with --yes.
SESSION = """
import sys
import typer
from shoal.agents.cli.commands.budget import budget
app = typer.Typer()
app.command()(budget)
for options in (["--raise"], ["--raise"], ["--raise", "--yes"]):
    with open(sys.argv[1]) as file:
        text = file.read()
    try:
        app([sys.argv[1], *options], standalone_mode=False)
    except Exception as error:
        print(type(error).__name__)
        continue
    with open(sys.argv[1], "w") as file:
        file.write(text.replace("epsilon = 0.5", "epsilon = 0.6"))
"""


@pytest.mark.slow
def test_a_terminal_is_asked_before_the_budget_is_raised(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'audit.db'}"
    with Ledger.open(url, migrate=True) as ledger:
        register(ledger, version(epsilon="0.1"), budget_epsilon=Fraction("0.3"))
    config = write(tmp_path / "shoal.toml", url, "0.5")
    # given a terminal at which somebody says no, and then yes
    keyboard, terminal = pty.openpty()
    os.write(keyboard, b"n\ny\n")
    done = subprocess.run(
        [sys.executable, "-c", SESSION, str(config)], stdin=terminal, capture_output=True, text=True, check=True
    )
    os.close(keyboard)
    os.close(terminal)
    # then the first changed nothing, the second raised it, and --yes raised it again without a question
    said = [line.strip() for line in done.stdout.splitlines()]
    assert said[0] == "Abort"
    assert [line for line in said if line.startswith("budget")] == [
        "budget   epsilon 0.5 per person, for ever", "budget   epsilon 0.6 per person, for ever",
    ]  # fmt: skip
    assert done.stderr.count("Raise it?") == 2
    with Ledger.open(url) as ledger:
        report = ledger.budget_report()
        assert report is not None
        assert report.epsilon == Fraction("0.6")


def test_a_metric_that_left_the_configuration_is_retired_by_name(config: Path, database_url: str) -> None:
    # given a metric in the ledger that the configuration does not have any more
    with Ledger.open(database_url, migrate=True) as ledger:
        register(ledger, version(epsilon="0.1"), version("visits", 3, epsilon="0.1"), budget_epsilon=Fraction("0.3"))
    # when it is retired
    said = shoal("budget", config, "--retire", "visits").stdout.splitlines()
    # then it says so, and the charge stays
    assert said[0] == "retired  visits version 3"
    assert "charged  epsilon 0.1 by shoal: visits version 3 (retired)" in said
    assert "left     epsilon 0.1" in said
    # and again there is nothing to do
    again = json.loads(shoal("budget", config, "--retire", "visits", "--json").stdout)
    assert (again["retired"], [one["state"] for one in again["charges"]]) == ([], ["active", "retired"])


@pytest.mark.parametrize("active", [1, 3], ids=["the file is newer", "the file is older"])
def test_another_version_than_the_file_has_is_not_retired(config: Path, database_url: str, active: int) -> None:
    # given a metric that is active in another version than the file has
    config.write_text(config.read_text() + "version = 2\n")
    with Ledger.open(database_url, migrate=True) as ledger:
        register(ledger, version("basket", active, epsilon="0.1"), budget_epsilon=Fraction("0.3"))
    # when it is to be retired by that file, then both are named, and nothing is done
    refused = shoal("budget", config, "--retire", "basket").exception
    assert isinstance(refused, LedgerError)
    assert str(refused) == (
        f'{config}: it has metric "basket" version 2, and version {active} is the active one; to retire version '
        f"{active} for good, give the configuration that has it, or one without this metric"
    )
    assert "retired" not in shoal("budget", config).stdout
    # and the file that has it retires it
    config.write_text(config.read_text().replace("version = 2", f"version = {active}"))
    assert shoal("budget", config, "--retire", "basket").stdout.startswith(f"retired  basket version {active}\n")
    # and when none is active any more, then no file retires anything
    config.write_text(config.read_text().replace(f"version = {active}", "version = 2"))
    assert json.loads(shoal("budget", config, "--retire", "basket", "--json").stdout)["retired"] == []


def test_a_metric_that_nobody_registered_cannot_be_retired(config: Path) -> None:
    shoal("migrate", config)
    refused = shoal("budget", config, "--retire", "unknown").exception
    assert isinstance(refused, LedgerError)
    assert 'no metric "unknown" is registered' in str(refused)
