"""`shoal window`: any window, from the audit log or from a file of releases, by anyone."""

import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import delete, text, update
from typer.testing import CliRunner, Result

from shoal.agents.audit import key_file
from shoal.agents.audit.database import Database
from shoal.agents.cli.main import app
from shoal.models.errors import ConfigError, InputError, LedgerError, ShoalError
from shoal.models.tables import ReleaseRow
from shoal.models.times import iso

USUAL = """
topic = "sales"
user = "who"
value = "amount"
time = "at"
epsilon = 1
max_contributions = 50
every = "1h"
"""
RANGE = "range = [0, 10]\n"
ALL_WINDOWS = 'decay = { kind = "all-windows" }\n' + RANGE
METRICS = {
    "total": 'statistic = "sum"\n' + ALL_WINDOWS,
    "shops": 'statistic = "mean"\ngroup = "shop"\nalgorithm = "patent"\nmax_gap = 2\n' + ALL_WINDOWS,
    "visits": 'statistic = "count"\ndecay = { kind = "none" }\nversion = 3',
    "recent": RANGE + 'statistic = "sum"\ndecay = { kind = "window", length = "2h" }',
}
HOUR = 3_600_000_000
NAMES = [
    "metric", "group", "version", "start", "end", "value", "noise_sd", "low", "high", "samples", "mechanism",
]  # fmt: skip


def configuration(url: str = "sqlite:///log.db", metrics: dict[str, str] = METRICS) -> str:
    head = f'[audit]\nurl = "{url}"\n[privacy]\nkey_file = "shoal.key"\nepsilon = 9\n'
    return head + "".join(f'[[metric]]\nname = "{name}"\n{USUAL}{more}\n' for name, more in metrics.items())


def event(hour: int, user: int) -> dict[str, Any]:
    return {"who": f"u{user}", "amount": user % 11, "shop": "xy"[user % 2], "at": iso(hour * HOUR)}


HOURS = [*range(24, 40), *range(50, 60)]
EVENTS = [event(hour, user) for hour in HOURS for user in range(hour % 3 + 1)]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which `shoal run` has been; its key is gone."""
    folder = tmp_path_factory.mktemp("released")
    run(folder, configuration())
    (folder / "shoal.key").unlink()
    return folder


def run(folder: Path, said: str) -> None:
    (folder / "shoal.toml").write_text(said)
    key_file.new(folder / "shoal.key")
    (folder / "events.jsonl").write_bytes(b"\n".join(map(orjson.dumps, EVENTS)))
    files = ("--input", folder / "events.jsonl", "--output", folder / "out.jsonl")
    if "postgresql" in said:
        shoal("migrate", folder / "shoal.toml")
    result = shoal("run", folder / "shoal.toml", *files)
    assert result.exit_code == 0, result.output


def shoal(*arguments: object, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments], input=stdin)


def told(folder: Path, *arguments: object, stdin: bytes | None = None) -> dict[str, Any]:
    result = shoal("window", folder / "shoal.toml", *arguments, "--json", stdin=stdin)
    if result.exception is not None:
        raise result.exception
    found: dict[str, Any] = orjson.loads(result.stdout)
    return found


def refused(error: type[ShoalError], message: str, folder: Path, *arguments: object) -> None:
    with pytest.raises(error) as caught:
        told(folder, *arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


ASKED = [
    ("--metric", "total", "--length", "5h"),
    ("--metric", "total", "--length", "3h", "--end", "1970-01-02T12:00:00Z"),
    ("--metric", "total", "--length", "90h", "--end", 56 * 3600),
    ("--metric", "shops", "--group", "x", "--length", "20h"),
    ("--metric", "shops", "--group", "y", "--length", "1d", "--end", 54 * 3600),
    ("--metric", "visits", "--length", "10h"),
]


@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_sql_and_any_file_of_releases_say_the_same_without_a_key(released, tmp_path, asked):
    assert not (released / "shoal.key").exists()
    # given the releases in the log, as `shoal run` wrote them, and as a dump in another order with repeats
    lines = (released / "out.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "dump.gz").write_bytes(gzip.compress(b"\n".join(lines[::-1] + lines[:7])))
    # then all of them tell the same
    found = told(released, *asked)
    assert list(found) == NAMES
    assert told(released, *asked, "--input", released / "out.jsonl") == found
    assert told(released, *asked, "--input", tmp_path / "dump.gz") == found
    assert told(released, *asked, "--input", "-", stdin=b"".join(lines)) == found


def test_it_is_the_statistic_of_what_came(released):
    found = told(released, "--metric", "visits", "--end", 54 * 3600, "--length", "20h")
    inside = [one for one in EVENTS if iso(34 * HOUR) <= one["at"] < iso(54 * HOUR)]
    assert (found["value"], found["samples"], found["noise_sd"]) == (len(inside), len(inside), 0)
    assert (found["start"], found["end"]) == (iso(34 * HOUR), iso(54 * HOUR))
    assert (found["version"], found["mechanism"], found["group"]) == (3, "exact", None)
    # and of a sum with noise somewhere near it
    found = told(released, "--metric", "total", "--end", 54 * 3600, "--length", "20h")
    assert abs(found["value"] - sum(one["amount"] for one in inside)) < 10 * found["noise_sd"]
    assert found["low"] < found["value"] < found["high"]
    assert (found["samples"], found["mechanism"]) == (len(inside), "blue")


def test_the_last_window_of_all_is_the_last_release(released):
    last = [one for one in map(orjson.loads, (released / "out.jsonl").read_bytes().splitlines())][-1]
    assert last["metric"] == "visits"
    result = shoal("window", released / "shoal.toml", "--metric", "visits", "--length", "900d", "--json")
    found = orjson.loads(result.stdout)
    assert {name: found[name] for name in ("value", "samples", "low")} == {
        name: last[name] for name in ("value", "samples", "low")
    }
    # what was asked for is said back, and that nothing was before
    assert found["start"].startswith("1967-")
    assert result.stderr == "shoal: note: nothing was before 1970-01-02T00:00:00Z, when the first step began\n"


def test_a_mean_with_more_noise_than_its_range_is_wide_is_told_from_a_finding(released):
    note = "shoal: note: the noise is wider than the range of the values, so that this mean says nothing\n"
    asked = ("--metric", "shops", "--group", "x", "--length", "2h")
    assert told(released, *asked)["noise_sd"] > 10
    assert shoal("window", released / "shoal.toml", *asked).stderr == note
    # a sum has no range that its noise could be wider than
    asked_of_sum = ("--metric", "total", "--length", "2h")
    assert told(released, *asked_of_sum)["noise_sd"] > 10
    assert shoal("window", released / "shoal.toml", *asked_of_sum).stderr == ""


def test_before_the_first_step_there_is_nothing(released):
    assert told(released, "--metric", "total", "--end", 7200, "--length", "1h")["value"] == 0
    found = told(released, "--metric", "shops", "--group", "x", "--end", "1970-01-01", "--length", "1h")
    assert (found["value"], found["noise_sd"], found["low"], found["samples"]) == (None, None, None, 0)


def test_a_person_gets_a_line_or_two(released):
    def said(*arguments: object) -> str:
        return shoal("window", released / "shoal.toml", *arguments).stdout

    one, two = said("--metric", "shops", "--group", "x", "--length", "2h").splitlines()
    assert one.startswith("mean of shops, group x, from 1970-01-03T10:00:00Z to 1970-01-03T12:00:00Z: ")
    assert two.startswith("noise interval ")
    assert two.endswith(" samples, mechanism patent")
    assert said("--metric", "visits", "--length", "2h").endswith("Z: 5, exactly\n")
    assert said("--metric", "shops", "--group", "x", "--end", 45 * 3600, "--length", "2h").endswith(
        ": none, nothing came\n"
    )


def test_the_log_is_only_read(released):
    before = (released / "log.db").read_bytes()
    told(released, *ASKED[0])
    assert (released / "log.db").read_bytes() == before
    assert {path.name for path in released.iterdir()} <= {
        "shoal.toml", "shoal.key.used", "events.jsonl", "out.jsonl", "log.db", "log.db-wal", "log.db-shm",
    }  # fmt: skip


def test_postgresql_tells_the_same_as_the_file(tmp_path, postgresql_url):
    run(tmp_path, configuration(postgresql_url))
    # by anyone who may read it, and nothing else
    (tmp_path / "shoal.key").unlink()
    join = "&" if "?" in postgresql_url else "?"
    reader = f"{postgresql_url}{join}options=-c%20default_transaction_read_only%3Don"
    (tmp_path / "shoal.toml").write_text(configuration(reader))
    database = Database(reader)
    with database.read() as connection:
        assert connection.execute(text("SHOW transaction_read_only")).scalar_one() == "on"
    database.close()
    for asked in ASKED:
        assert told(tmp_path, *asked) == told(tmp_path, *asked, "--input", tmp_path / "out.jsonl")


# ---------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("arguments", "option", "message"),
    [
        (
            ("--metric", "basket", "--length", "1h"),
            "--metric",
            "there is no metric 'basket'; name one of: total, shops",
        ),
        (("--metric", "shops", "--length", "1h"), "--group", 'metric "shops" has groups; name one'),
        (("--metric", "total", "--group", "x", "--length", "1h"), "--group", "has no groups; leave it out"),
        (("--metric", "total", "--length", "90m"), "--length", "'90m' is no multiple of the step, 1h; say 1h"),
        (("--metric", "total", "--length", "0h"), "--length", "'0h' is no multiple of the step, 1h; say 1h"),
        (("--metric", "total", "--length", "a day"), "--length", "'a day' is not a duration"),
        (("--metric", "total", "--length", "1h", "--end", "soon"), "--end", "'soon' is no time; say last, an ISO"),
        (("--metric", "total", "--length", "1h", "--end", "1e99"), "--end", "'1e99' is no time"),
        (
            ("--metric", "total", "--length", "1h", "--end", "1970-01-02T12:30:00Z"),
            "--end",
            "is no end of a step of 1h; say 1970-01-02T12:00:00Z or 1970-01-02T13:00:00Z",
        ),
        (("--metric", "total", "--length", "1h", "--end", "43200.5"), "--end", "is no end of a step of 1h"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_a_mistake_of_usage(released, arguments, option, message):
    result = shoal("window", released / "shoal.toml", *arguments)
    assert result.exit_code == 2
    said = " ".join(result.stderr.replace("│", " ").split())
    assert f"Invalid value for {option}: " in said
    assert message in said


def test_where_presence_is_protected_releases_tell_their_own_window_alone(tmp_path):
    protected = 'statistic = "count"\nrelation = "add-remove"\nstart = 1970-01-01\nend = 1970-02-01'
    text = configuration(metrics={"guests": protected}).replace('value = "amount"\n', "")
    (tmp_path / "shoal.toml").write_text(text)
    refused(ConfigError, "relation add-remove, whose releases tell", tmp_path, "--metric", "guests", "--length", "2h")


def test_what_is_not_there_is_named(released, tmp_path):
    out = released / "out.jsonl"
    refused(ConfigError, 'metric "recent" releases nothing that windows are made of', released, "--metric", "recent",
            "--length", "1h")  # fmt: skip
    late = ("--metric", "total", "--length", "1h", "--end", "1970-01-04")
    message = "1970-01-04T00:00:00Z is after the end of the last release, 1970-01-03T12:00:00Z; choose that one"
    refused(InputError, f'audit log: metric "total" version 1: {message}', released, *late)
    refused(InputError, f'{out}: metric "total" version 1: {message}', released, *late, "--input", out)
    group = ("--metric", "shops", "--length", "1h", "--group", "z")
    message = 'no release of metric "shops" version 1 group "z"; it has groups: x, y'
    refused(InputError, message, released, *group)
    refused(InputError, message, released, *group, "--input", out)
    refused(InputError, "cannot be read (No such file or directory)", released, *ASKED[0], "--input", tmp_path / "no")
    (tmp_path / "empty").write_bytes(b"\n")
    refused(InputError, "no release of metric", released, *ASKED[0], "--input", tmp_path / "empty")
    (tmp_path / "torn.gz").write_bytes(gzip.compress(out.read_bytes())[:-50])
    refused(
        InputError, "cannot be read (its gzip data is cut off)", released, *ASKED[0], "--input", tmp_path / "torn.gz"
    )


def test_the_configured_version_is_taken(released, tmp_path):
    # given releases of two versions, of which the configuration has one
    lines = (released / "out.jsonl").read_bytes().splitlines(keepends=True)
    others = [line.replace(b'"version":1', b'"version":2') for line in lines]
    (tmp_path / "both.jsonl").write_bytes(b"".join(others + lines))
    assert told(released, *ASKED[0], "--input", tmp_path / "both.jsonl") == told(released, *ASKED[0])
    # and where it is of a third
    third = configuration().replace('name = "total"', 'name = "total"\nversion = 4')
    (tmp_path / "shoal.toml").write_text(third.replace("log.db", f"{released}/log.db"))
    message = 'no release of metric "total" version 4; there are some of version 1'
    refused(InputError, f"{message}, 2: name it", tmp_path, *ASKED[0], "--input", tmp_path / "both.jsonl")
    refused(InputError, f"audit log, app 'shoal': {message}: name it", tmp_path, *ASKED[0])


def test_there_must_be_a_log_and_none_is_made(tmp_path):
    (tmp_path / "shoal.toml").write_text(configuration())
    refused(LedgerError, "log.db does not exist; name the audit log, or a file of releases", tmp_path, *ASKED[0])
    assert [path.name for path in tmp_path.iterdir()] == ["shoal.toml"]


def totals(released: Path) -> list[bytes]:
    return [line for line in (released / "out.jsonl").read_bytes().splitlines() if b'"metric":"total"' in line]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [*lines[:4], *lines[5:]], "release 5 is missing; give all from the first on"),
        (lambda lines: lines[1:], "release 1 is missing"),
        (lambda lines: [*lines, b"{"], "line 37: it is no release"),
        (lambda lines: [b"[1]", *lines], "line 1: it is no release"),
        (lambda lines: [b'{"metric":"total"}'], "line 1: it is no release"),
        (lambda lines: [b'{"metric":"total","version":1}'], "line 1: it is no release"),
        (lambda lines: [lines[0].replace(b'"nodes"', b'"other"')], "line 1: it is no release with nodes"),
        (lambda lines: [*lines, lines[3].replace(b'"samples":', b'"samples":1')], "line 37: release 4 has two values"),
        (lambda lines: [one.replace(b'"epsilon":1', b'"epsilon":2') for one in lines], "release 36 is not what the"),
        (
            lambda lines: [lines[0].replace(b'"value":', b'"value":null,"other":'), *lines[1:]],
            "release 1 is not what the",
        ),
    ],
)
def test_a_file_that_is_not_all_of_them_as_they_were_is_refused(released, tmp_path, change, message):
    lines = totals(released)
    assert len(lines) == 36
    (tmp_path / "changed.jsonl").write_bytes(b"\n".join(change(lines)))
    refused(InputError, message, released, *ASKED[0], "--input", tmp_path / "changed.jsonl")


def test_a_log_that_was_changed_is_refused(tmp_path):
    # given a log in which somebody emptied a release of one metric, and took one out of another
    run(tmp_path, configuration())
    with Database(f"sqlite:///{tmp_path}/log.db").write() as connection:
        last = (ReleaseRow.metric == "total", ReleaseRow.seq == 36)
        connection.execute(update(ReleaseRow).where(*last).values(body="{}"))
        connection.execute(delete(ReleaseRow).where(ReleaseRow.metric == "visits", ReleaseRow.seq == 1))
    # then their windows are refused, and no others
    refused(InputError, "release 36: it is no release with nodes; shoal audit verify", tmp_path, *ASKED[0])
    refused(InputError, "release 1 is missing; shoal audit verify CONFIG", tmp_path, *ASKED[-1])
    assert told(tmp_path, *ASKED[3])["metric"] == "shops"
