"""`shoal run`: a file in, releases out, every one of them in the audit log first."""

import gzip
import os
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import select
from typer.testing import CliRunner, Result

from shoal.agents.audit import key_file
from shoal.agents.audit.ledger import Ledger
from shoal.agents.cli.main import app
from shoal.models.errors import AuditError, ConfigError, InputError, KeyFileError, LedgerError, ShoalError
from shoal.models.tables import ActivationRow

CONFIG = """
[audit]
url = "sqlite:///log.db"
[privacy]
key_file = "shoal.key"
epsilon = 4
[[metric]]
name = "amount"
topic = "sales"
user = "who"
value = "amount"
time = "at"
statistic = "mean"
algorithm = "naive"
range = [0, 10]
epsilon = 1
max_contributions = 5
users = 10
every = "1d"
"""
EVENTS: list[dict[str, Any]] = [
    {"who": "anna", "amount": 1.5, "at": "2024-01-01T10:00:00Z"},
    {"who": "bert", "amount": 3, "at": "2024-01-01T11:00:00Z"},
    {"who": "anna", "amount": 1e3, "at": "2024-01-02T10:00:00Z"},
    {"who": "carl", "amount": "free", "at": "2024-01-02T11:00:00Z"},
    {"who": 7, "amount": 2, "at": 1704300000},
]


PLANE = CONFIG.replace('value = "amount"', 'value = ["x", "at.y"]').replace("[0, 10]", "[[0, 10], [-5, 5]]")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shoal.toml").write_text(CONFIG)
    key_file.new(tmp_path / "shoal.key")
    write(tmp_path / "events.jsonl", EVENTS)
    return tmp_path


def write(path: Path, events: list[dict[str, Any]]) -> Path:
    path.write_bytes(b"\n".join(orjson.dumps(event) for event in events) + b"\n\n")
    return path


def shoal(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def run(folder: Path, name: str = "events.jsonl", *more: object) -> list[dict[str, Any]]:
    result = shoal("run", folder / "shoal.toml", "--input", folder / name, "--output", folder / "out.jsonl", *more)
    if result.exception is not None:
        raise result.exception
    return [orjson.loads(line) for line in (folder / "out.jsonl").read_bytes().splitlines()]


def refused(folder: Path, error: type[ShoalError], message: str, name: str = "events.jsonl", *more: object) -> None:
    with pytest.raises(error) as caught:
        run(folder, name, *more)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_release_at_the_end_of_every_tick_with_a_contribution(folder):
    releases = run(folder)
    assert [(one["at"], one["seq"], one["samples"]) for one in releases] == [
        ("2024-01-02T00:00:00Z", 1, 2), ("2024-01-03T00:00:00Z", 2, 3), ("2024-01-04T00:00:00Z", 3, 4),
    ]  # fmt: skip
    assert list(releases[0]) == [
        "metric", "group", "seq", "id", "at", "value", "noise_sd", "low", "high", "samples", "epsilon", "delta",
        "unit", "relation", "algorithm", "version",
    ]  # fmt: skip
    with Ledger.open(f"sqlite:///{folder}/log.db") as ledger:
        assert [head.seq for head in ledger.of("shoal").heads().values()] == [3]


def test_a_second_run_yields_the_same_bytes(folder):
    run(folder)
    first = (folder / "out.jsonl").read_bytes()
    run(folder)
    assert (folder / "out.jsonl").read_bytes() == first


def test_csv_and_gzip_say_what_json_lines_say(folder):
    expected = run(folder)
    cells = [f"{event['who']},{event['amount']},{event['at']}" for event in EVENTS]
    (folder / "events.csv").write_text("who,amount,at\n" + "\n".join(cells) + "\n\n")
    (folder / "events.csv.gz").write_bytes(gzip.compress((folder / "events.csv").read_bytes()))
    other = folder / "other"
    other.mkdir()
    (other / "shoal.toml").write_text(CONFIG)
    os.link(folder / "shoal.key", other / "shoal.key")
    for name in ("events.csv", "events.csv.gz"):
        os.link(folder / name, other / name)
        (other / "log.db").unlink(missing_ok=True)
        (other / "shoal.key.used").unlink(missing_ok=True)
        assert run(other, name) == expected


def test_standard_input_and_output(folder):
    run(folder)
    expected = (folder / "out.jsonl").read_bytes()
    arguments = ["run", str(folder / "shoal.toml"), "--input", "-", "--output", "-"]
    result = CliRunner().invoke(app, arguments, input=(folder / "events.jsonl").read_bytes())
    assert result.stdout_bytes == expected
    remark, summary = result.stderr.splitlines()
    assert "1 of 5 records (20 %) can be used by no metric: line 4" in remark
    assert summary == "5 events, 3 releases; dead_letters.amount.bad-value 1"


def test_bad_input_is_counted_and_written_and_no_failure(folder):
    run(folder, "events.jsonl", "--dead-letters", folder / "dead.jsonl")
    (letter,) = [orjson.loads(line) for line in (folder / "dead.jsonl").read_bytes().splitlines()]
    assert (letter["reason"], letter["metric"], letter["topic"], letter["offset"]) == (
        "bad-value",
        "amount",
        "sales",
        3,
    )


def test_a_json_summary(folder):
    config, events, out = folder / "shoal.toml", folder / "events.jsonl", folder / "out.jsonl"
    result = shoal("run", config, "--input", events, "--output", out, "--json")
    assert orjson.loads(result.stdout) == {
        "events": 5, "releases": 3, "counters": {"dead_letters.amount.bad-value": 1},
    }  # fmt: skip


def test_an_ended_stream_takes_no_other_input(folder):
    run(folder)
    write(folder / "more.jsonl", [*EVENTS, {"who": "d", "amount": 1, "at": "2024-02-01"}])
    refused(folder, AuditError, "version", "more.jsonl")
    write(folder / "other.jsonl", [{**EVENTS[0], "amount": 9}, *EVENTS[1:]])
    refused(folder, AuditError, "", "other.jsonl")


def test_an_open_stream_may_be_continued(folder):
    first = run(folder, "events.jsonl", "--open")
    write(folder / "more.jsonl", [*EVENTS, {"who": "d", "amount": 1, "at": "2024-01-03T20:00:00Z"}])
    longer = run(folder, "more.jsonl")
    assert longer[: len(first)] == first
    assert [one["seq"] for one in longer] == [1, 2, 3]


def test_a_release_per_contribution_comes_in_order_of_time(folder):
    text = CONFIG.replace('"1d"', '"contribution"').replace("max_contributions", "max_per_group")
    text += 'group = "who"\nlateness = "2d"\n'
    (folder / "shoal.toml").write_text(text)
    write(folder / "mixed.jsonl", [EVENTS[2], EVENTS[0], EVENTS[1], EVENTS[4]])
    releases = run(folder, "mixed.jsonl")
    assert [one["at"] for one in releases] == sorted(one["at"] for one in releases)
    assert [(one["group"], one["seq"]) for one in releases] == [("anna", 2), ("bert", 1), ("anna", 1), ("7", 1)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("events.txt", b"", "unknown kind of file"),
        ("absent.jsonl", None, "cannot be read"),
        ("bad.jsonl.gz", b"no gzip", "cannot be read"),
        ("cut.jsonl.gz", gzip.compress(b"{}" * 1000, mtime=0)[:-12], "cannot be read"),
        ("twice.csv", b"who,at,who\n1,2,3\n", "names a column twice (columns [1, 3])"),
        ("nul.csv", b'who,amount\n"a' + b"x" * (1 << 25), "not CSV"),
    ],
)
def test_files_that_cannot_be_read_say_so_in_one_line(folder, name, content, message):
    if content is not None:
        (folder / name).write_bytes(content)
    refused(folder, InputError, message, name)


def test_outputs_that_cannot_be_written(folder):
    config, events = folder / "shoal.toml", folder / "events.jsonl"
    result = shoal("run", config, "--input", events, "--output", folder / "no" / "out")
    assert isinstance(result.exception, InputError)


def test_several_topics_need_a_name(folder):
    second = CONFIG[CONFIG.index("[[metric]]") :].replace('"amount"', '"price"', 1).replace('"sales"', '"offers"')
    (folder / "shoal.toml").write_text(CONFIG + second)
    refused(folder, ConfigError, "say whose events these are: --topic NAME")
    refused(folder, ConfigError, "name one of: sales, offers", "events.jsonl", "--topic", "other")
    assert len(run(folder, "events.jsonl", "--topic", "sales")) == 3


def test_a_file_has_no_record_times(folder):
    (folder / "shoal.toml").write_text(CONFIG.replace('time = "at"\n', ""))
    refused(folder, ConfigError, "add `time =")


def test_what_the_mechanism_refuses_is_a_configuration_error(folder):
    (folder / "shoal.toml").write_text(CONFIG.replace("[0, 10]", "[0, 1e-295]"))
    refused(folder, ConfigError, 'metric "amount"')


def test_a_key_meets_one_log(folder):
    run(folder)
    (folder / "log.db").unlink()
    refused(folder, KeyFileError, "belongs to another audit log")


def test_another_key_or_other_parameters_under_the_same_version_are_refused(folder):
    run(folder)
    (folder / "shoal.toml").write_text(CONFIG.replace("users = 10", "users = 11"))
    refused(folder, LedgerError, "users")
    (folder / "shoal.toml").write_text(CONFIG)
    for name in ("shoal.key", "shoal.key.used"):
        (folder / name).unlink()
    key_file.new(folder / "shoal.key")
    refused(folder, LedgerError, "key")


def test_the_budget_is_not_exceeded(folder):
    (folder / "shoal.toml").write_text(CONFIG.replace("epsilon = 4", "epsilon = 0.5"))
    refused(folder, LedgerError, "0.5")
    assert not (folder / "shoal.key.used").exists(), "a refusal binds no key"


def test_two_coordinates_are_released_as_lists_and_audited(folder: Path) -> None:
    plane = PLANE.replace('time = "at"', 'time = "when"').replace("epsilon = 1", "epsilon = 1.5")
    (folder / "shoal.toml").write_text(plane)
    rows = [{"who": f"user{n % 7}", "x": 4, "at": {"y": -2.5}, "when": 1704100000 + 3600 * n} for n in range(35)]
    write(folder / "plane.jsonl", [*rows, {"who": "user1", "x": 4, "when": 1704100000}])
    releases = run(folder, "plane.jsonl")
    # then each release has a number for each coordinate, about the means, and the record without one counts for none
    assert [release["samples"] for release in releases] == [15, 35]
    for release in releases:
        assert [len(release[name]) for name in ("value", "noise_sd", "low", "high")] == [2, 2, 2, 2]
        assert release["epsilon"] == 1.5
        for value, sd, truth in zip(release["value"], release["noise_sd"], (4, -2.5), strict=True):
            assert abs(value - truth) < 10 * sd
    assert releases[0]["noise_sd"][0] == releases[0]["noise_sd"][1]
    # and the log holds them, verifies, and refuses a pattern made of a coordinate
    assert shoal("audit", "verify", folder / "shoal.toml").exit_code == 0
    other = plane.replace('name = "amount"', 'name = "other"').replace('["x", "at.y"]', '"z"')
    other = other.replace("[[0, 10], [-5, 5]]", "[0, 1]").replace("every", 'group = "x"\nevery')
    other = other.replace("max_contributions", "max_per_group")
    (folder / "shoal.toml").write_text(other)
    refused(
        folder, LedgerError, "'x' is the value of one metric of this log and 'x' is public in another", "plane.jsonl"
    )


def test_a_given_prior_is_used_and_said_to_be_public(folder: Path) -> None:
    given = CONFIG.replace('"naive"', '"wishful"\nprior = 3').replace("max_contributions = 5", "max_contributions = 2")
    (folder / "shoal.toml").write_text(given)
    assert "private only if it was made without these values" in shoal("check", folder / "shoal.toml").stdout
    rows = [{"who": who, "amount": 3, "at": 1704100000 + n} for n, who in enumerate("abcab")]
    write(folder / "pairs.jsonl", rows)
    # then the two users with both samples count, and the one with fewer does not
    (release,) = run(folder, "pairs.jsonl")
    assert (release["samples"], release["algorithm"]) == (4, "wishful")
    (folder / "shoal.toml").write_text(given.replace("prior = 3", "prior = 30"))
    refused(folder, ConfigError, "prior lies outside the range; choose a number inside it", "pairs.jsonl")


def test_activations_of_two_coordinates_are_logged_as_they_are_published(folder: Path) -> None:
    plane = PLANE.replace('time = "at"', 'time = "when"').replace('"naive"', '"full"')
    plane = plane.replace("epsilon = 4", "epsilon = 1e6")
    plane = plane.replace("epsilon = 1\nmax_contributions = 5", "epsilon = 1e6\nmax_contributions = 8")
    (folder / "shoal.toml").write_text(plane)
    rows = [{"who": f"user{n % 7}", "x": 4, "at": {"y": -2.5}, "when": 1704100000 + 3600 * n} for n in range(56)]
    write(folder / "plane.jsonl", rows)
    assert run(folder, "plane.jsonl")[-1]["samples"] == 56
    with Ledger.open(f"sqlite:///{folder}/log.db") as ledger, ledger.database.read() as connection:
        logged = connection.execute(select(ActivationRow.level, ActivationRow.prior, ActivationRow.body)).all()
    assert [row.level for row in logged] == [2, 3]
    for row in logged:
        body = orjson.loads(row.body)
        assert body["prior"] == orjson.loads(row.prior)
        assert [len(body[name]) for name in ("prior", "samples")] == [2, 2]
    assert shoal("audit", "verify", folder / "shoal.toml").exit_code == 0
