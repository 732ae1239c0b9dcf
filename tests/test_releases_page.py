"""The pages on releases and SQL: a program reads from a real Kafka; queries run on both databases and are right."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from shoal.agents.audit import key_file
from shoal.agents.audit.database import Database
from shoal.agents.cli.main import app
from shoal.models.tables import Table
from tests.support.kafka import Kafka, Record

REFERENCE = Path(__file__).parent.parent / "docs/reference"
PAGE, SQL = ((REFERENCE / name).read_text("utf-8") for name in ("releases.md", "sql.md"))
QUERIES = [query for query in re.findall(r"^```sql\n(.*?)^```$", SQL, re.M | re.S) if query.startswith("SELECT")]
(PROGRAM,) = re.findall(r"^```python\n(import asyncio\n.*?)^```$", PAGE, re.M | re.S)

CONFIG = """
[audit]
url = "{url}"
[privacy]
key_file = "shoal.key"
epsilon = 99
"""
METRIC = """
[[metric]]
topic = "doors"
user = "who"
time = "at"
value = "minutes"
range = [-0.5, 9.5]
max_contributions = 3
epsilon = 2
"""
# Of each kind of value one: numbers that mean something and that do not, whole ones, objects, lists.
METRICS = {
    "visits": 'statistic = "mean"\nslot = "1h"\ngroup = "door"\nmax_slots = 8\nunit = "user"',
    "drowned": 'statistic = "mean"\nalgorithm = "naive"\nusers = 10\nevery = "1h"\nclamp = true',
    "total": 'statistic = "sum"\nevery = "1h"',
    "number": 'statistic = "count"\nevery = "1h"',
    "minutes": 'statistic = "distribution"\nbins = 4\nslot = "1h"\ngroup = "door"\nmax_slots = 8\nunit = "user"',
    "spread": 'statistic = "variance"\nslot = "1h"\nmax_slots = 8\nunit = "user"',
    "both": 'statistic = "mean"\nalgorithm = "naive"\nusers = 10\nevery = "1h"',
}
HOURS, PEOPLE, DOORS = 3, 40, ("ea\\u0000st", "we\0st")
EVENTS = [
    {"who": f"p{who}", "at": 3600 * hour + who, "door": DOORS[who % 2], "minutes": who % 9, "seconds": who}
    for hour in range(HOURS)
    for who in range(PEOPLE)
]


def said() -> str:
    sections = {name: METRIC + f'name = "{name}"\n{more}\n' for name, more in METRICS.items()}
    sections["number"] = sections["number"].replace("range = [-0.5, 9.5]\n", "")
    for name in ("visits", "minutes"):
        sections[name] = sections[name].replace("max_contributions", "max_per_group")
    sections["drowned"] = sections["drowned"].replace("epsilon = 2", "epsilon = 0.001")
    sections["both"] = sections["both"].replace('"minutes"', '["minutes", "seconds"]').replace(
        "[-0.5, 9.5]", "[[0, 9], [0, 99]]"
    )  # fmt: skip
    return "".join(sections.values())


@pytest.fixture
def log(database_url: str, tmp_path: Path) -> list[dict[str, Any]]:
    """The releases of a run whose audit log is `database_url`."""
    return published(database_url, tmp_path, said())


def published(database_url: str, tmp_path: Path, metrics: str) -> list[dict[str, Any]]:
    key_file.new(tmp_path / "shoal.key")
    config, events, out = tmp_path / "shoal.toml", tmp_path / "events.jsonl", tmp_path / "out.jsonl"
    config.write_text(CONFIG.format(url=database_url) + metrics)
    events.write_text("\n".join(map(json.dumps, EVENTS)))
    for command in (["migrate", config], ["run", config, "--input", events, "--output", out]):
        done = CliRunner().invoke(app, list(map(str, command)))
        assert done.exit_code == 0, done.output
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def rows(url: str, query: str) -> list[dict[str, Any]]:
    database = Database(url)
    with database.read() as connection:
        found = [dict(row._mapping) for row in connection.execute(text(query))]
    database.close()
    return found


def number(value: Any) -> Any:
    return value if isinstance(value, int | float) else None


def group(release: dict[str, Any]) -> str | None:
    """As the database keeps it: PostgreSQL has no NUL."""
    name = release["group"]
    return None if name is None else name.replace("\\", "\\\\").replace("\0", "\\0")


def exceeds(release: dict[str, Any]) -> bool | None:
    if release["metric"] not in ("visits", "drowned") or release["value"] is None:
        return None
    return bool(release["noise_sd"] > 10)


def test_the_view_has_a_row_for_each_release_with_its_fields(log: list[dict[str, Any]], database_url: str) -> None:
    found = {row["id"]: row for row in rows(database_url, "SELECT * FROM releases")}
    assert len(found) == len(log) > 20
    for release in log:
        row = found[release["id"].replace("\\", "\\\\").replace("\0", "\\0")]
        assert json.loads(row["body"]) == release
        expected = {name: number(release[name]) for name in ("value", "noise_sd", "low", "high", "samples")}
        expected |= {"count": None, "count_sd": None, "relation": "values"}
        assert {name: row[name] for name in expected} == expected
        same = ("metric", "version", "seq", "unit")
        assert {name: row[name] for name in same} | {"at": row["until"]} == {
            name: release[name] for name in (*same, "at")
        }
        assert (row["group_name"], row["app"], row["state"]) == (group(release), "shoal", "ended")
        assert row["noise_exceeds_range"] == exceeds(release)
    # and a clamped value that says nothing is told from one that does
    signs = {row["metric"]: row["noise_exceeds_range"] for row in found.values()}
    assert signs == {
        "visits": 0,
        "drowned": 1,
        "total": None,
        "number": None,
        "minutes": None,
        "spread": None,
        "both": None,
    }


def test_the_view_shows_noisy_counts_where_presence_is_protected(database_url: str, tmp_path: Path) -> None:
    more = 'relation = "add-remove"\nevery = "1h"\nstart = "1970-01-01"\nend = "1970-01-01T03:00:00Z"\n'
    sections = [METRIC + f'name = "{name}"\nstatistic = "{name}"\n{more}' for name in ("mean", "sum")]
    releases = published(database_url, tmp_path, "".join(sections))
    names = ("value", "count", "count_sd", "relation")
    found = rows(database_url, "SELECT id, value, count, count_sd, relation, samples FROM releases")
    assert {row.pop("id"): row for row in found} == {
        one["id"]: {name: one.get(name) for name in names} | {"samples": None} for one in releases
    }
    assert sum(row["count"] is not None for row in found) == HOURS == len(found) / 2


def test_the_queries_say_what_they_are_for(log: list[dict[str, Any]], database_url: str) -> None:
    latest, over_time, places, tails, histogram, left, spent = (rows(database_url, query) for query in QUERIES)
    # the latest value of every metric and group
    last = {(release["metric"], group(release)): release for release in log}
    assert [(row["metric"], row["group_name"]) for row in latest] == sorted(
        last, key=lambda place: (place[0], place[1] or "")
    )
    for row in latest:
        release = last[row["metric"], row["group_name"]]
        assert (row["until"], row["value"], row["high"]) == (
            release["at"], number(release["value"]), number(release["high"]),
        )  # fmt: skip
    # one metric over time, of which nothing is left if it says nothing, and all of a sum
    said = [release for release in log if release["metric"] == "visits"]
    assert len(over_time) == len(said) == HOURS * len(DOORS)
    assert {(row["until"], row["group_name"], row["value"]) for row in over_time} == {
        (release["at"], group(release), release["value"]) for release in said
    }
    assert rows(database_url, QUERIES[1].replace("visits", "drowned")) == []
    assert len(rows(database_url, QUERIES[1].replace("visits", "total"))) == HOURS
    # each place's average of every hour, with both ends of the hour
    assert {(row["since"], row["until"], row["group_name"], row["value"], row["samples"]) for row in places} == {
        (f"1970-01-01T0{int(one['at'][12]) - 1}:00:00Z", one["at"], group(one), one["value"], one["samples"])
        for one in said
    }
    # quantiles, and the latest histogram
    shapes = {(one["at"], group(one)): one["value"] for one in log if one["metric"] == "minutes"}
    assert {(row["until"], row["group_name"]): (row["median"], row["upper"]) for row in tails} == {
        place: (value["quantiles"]["0.5"], value["quantiles"]["0.95"]) for place, value in shapes.items()
    }
    final = max(at for at, _ in shapes)
    assert [(row["group_name"], row["bin_low"], row["bin_high"], row["value"]) for row in histogram] == [
        (door, 2.5 * bin_ - 0.5, 2.5 * bin_ + 2.0, share)
        for door in sorted({str(door) for _, door in shapes})
        for bin_, share in enumerate(shapes[final, door]["histogram"])
    ]
    # what is left, and who spent it
    charges = {name: {"drowned": 0.001, "number": 0.0}.get(name, 2.0) for name in METRICS}
    (budget,) = left
    assert (budget["ledger_unit"], budget["budget_epsilon"]) == ("user", 99)
    assert budget["charged_epsilon"] == pytest.approx(sum(charges.values()))
    assert budget["left_epsilon"] == pytest.approx(99 - sum(charges.values()))
    assert [(row["metric"], row["charge_epsilon"], row["published"]) for row in spent] == sorted(
        ((name, charge, sum(one["metric"] == name for one in log)) for name, charge in charges.items()),
        key=lambda row: (-row[1], row[0]),
    )


def test_every_table_of_the_log_is_on_the_page_with_its_columns() -> None:
    described = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", PAGE.split("## The tables")[1], re.M))
    assert set(described) == set(Table.metadata.tables)
    for name, table in Table.metadata.tables.items():
        assert set(re.findall(r"`(\w+)`", described[name])) >= {column.name for column in table.columns}, name


def test_the_program_prints_the_releases_that_are_committed(kafka: Kafka) -> None:
    # given a topic of releases
    topic = kafka.create_topic(kafka.name("releases"), 2)
    releases = [
        {"metric": "visits", "group": door, "at": "1970-01-01T01:00:00Z", "value": 4.5, "noise_sd": 0.25}
        for door in ("east", "west")
    ]
    records = [Record(f"visits|{one['group']}".encode(), json.dumps(one).encode()) for one in releases]
    kafka.produce(topic, records, transactional_id=kafka.name())
    # when the program of the page runs
    program = PROGRAM.replace("localhost:9092", kafka.bootstrap).replace("shoal.releases", topic)
    assert program != PROGRAM
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        lines = {reader.stdout.readline().rstrip("\n") for _ in releases}
        reader.kill()
    # then it prints them
    assert lines == {f"visits {door} 1970-01-01T01:00:00Z 4.5 0.25" for door in ("east", "west")}
