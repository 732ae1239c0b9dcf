"""The views for readers: their numbers are those of the releases, digit by digit, and no other right is needed."""

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import psycopg
import pytest
from sqlalchemy import insert, inspect, make_url, text

from shoal.agents.audit.budget import write_budget
from shoal.agents.audit.database import Database
from shoal.agents.audit.ledger import Ledger
from shoal.migrations.views import statements
from shoal.models.errors import LedgerError
from shoal.models.tables import MetricVersion, ReleaseRow
from shoal.models.views import VIEWS
from tests.golden.driver import parameters
from tests.support.golden_forms import READ, made_by

Rows = list[dict[str, Any]]
HOUR = 3_600_000_000
# Of an estimate, what its release says and which number it is.
COLUMNS = (
    "id", "part", "quantile", "bin", "bin_low", "bin_high", "field", "value", "noise_sd", "low", "high", "samples",
    "count", "count_sd", "epsilon", "delta",
)  # fmt: skip


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    with Ledger.open(database_url, migrate=True) as opened:
        yield opened


def put(ledger: Ledger, app: str, metric: str, parameters: str, releases: Rows = [], **other: Any) -> None:  # noqa: B006
    """A metric version with its releases, as a run leaves them; `releases` have a `body` if their digits count."""
    version = {
        "app": app, "metric": metric, "version": 1, "digest": "d", "parameters": parameters, "key_fingerprint": "f",
        "epsilon": Fraction(1), "delta": Fraction(0), "unit": "user", "relation": "values",
        "charge_epsilon": Fraction(1), "charge_delta": Fraction(0), "state": "active", "registered": "then",
        "added": False,
    } | other  # fmt: skip
    rows = [
        {
            "app": app, "metric": metric, "version": 1, "group": one["group"] or "", "seq": one["seq"],
            "id": one["id"], "at": one["at"], "body": one.get("body", json.dumps(one)), "previous_hash": b"",
            "hash": b"",
        }
        for one in releases
    ]  # fmt: skip
    with ledger.database.write() as connection:
        connection.execute(insert(MetricVersion), [version])
        if rows:
            connection.execute(insert(ReleaseRow), rows)


def read(ledger: Ledger, query: str) -> Rows:
    with ledger.database.read() as connection:
        return [dict(row._mapping) for row in connection.execute(text(query))]


def release(at: str = "2024-03-01T06:00:00Z", group: str | None = None, **said: Any) -> dict[str, Any]:
    usual = {"metric": "m", "group": group, "seq": 1, "id": f"m/1/{group or ''}/1", "at": at, "value": 1.5}
    return usual | {"noise_sd": 0.5, "low": 1.0, "high": 2.0, "epsilon": 1.0, "delta": 0.0} | said


def of(statistic: str, low: str, high: str) -> dict[str, Any]:
    """The part `of` in the parameters of a version."""
    return {"kind": statistic, "values": {"fields": {"names": ["x"]}, "ranges": [[low, high]]}}


# ---------------------------------------------------------------- estimates


def expected(one: dict[str, Any], parameters: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of a release, written down a second time."""
    shape = one["low"] if one["value"] is None else one["value"]
    for part, place in places(shape):
        low = width = bins = None
        if part in ("histogram", "cdf"):
            low, high = (float(Fraction(end)) for end in parameters["of"]["values"]["ranges"][0])
            width, bins = high - low, len(shape[part])
        numbers = [at(one[name], part, place) for name in ("value", "noise_sd", "low", "high")]
        field = field_of(parameters["of"], place)
        yield (
            one["id"], {"quantiles": "quantile", None: "value"}.get(part, part),
            float(place) if part == "quantiles" else None,
            *((None,) * 3 if bins is None else (place + 1, *(low + width * (place + end) / bins for end in (0, 1)))),
            field, *numbers, *(one.get(name) for name in ("samples", "count", "count_sd", "epsilon", "delta")),
        )  # fmt: skip


def field_of(said: dict[str, Any], place: Any) -> str | None:
    """Field of the event that a row of the view `estimates` is about: the coordinate's, or the text of a predicate."""
    names: list[str] = said.get("values", said).get("fields", {}).get("names", [])
    if len(names) > 1:
        return None if place is None else names[place]
    return names[0] if names else None


def places(shape: Any) -> Iterator[tuple[Any, Any]]:
    """The part of each number, and its place in it."""
    for part, inner in shape.items() if isinstance(shape, dict) else [(None, shape)]:
        if isinstance(inner, dict):
            yield from ((part, key) for key in inner)
        elif isinstance(inner, list):
            yield from ((part, index) for index in range(len(inner)))
        else:
            yield part, None


def at(field: Any, part: Any, place: Any) -> Any:
    for step in (part, place):
        if step is not None:
            field = field[step] if isinstance(field, list) else (field or {}).get(step)
    return field


def plain(row: tuple[Any, ...]) -> str:
    """For a comparison that tells digits apart, and not 3 from 3.0."""
    return repr([float(value) if isinstance(value, int) else value for value in row])


@pytest.mark.slow
def test_estimates_are_the_numbers_of_the_releases_digit_by_digit(ledger: Ledger) -> None:
    # given the releases of golden cases
    for case in READ:
        due: list[str] = []
        releases = [json.loads(body) | {"body": body.decode()} for body in made_by(case).releases]
        for name, said in parameters(case).items():
            of_metric = [one for one in releases if one["metric"] == name]
            put(ledger, case.name, name, said["parameters"], of_metric)
            due += [plain(row) for one in of_metric for row in expected(one, json.loads(said["parameters"]))]
        # then the view has a row for each of their numbers, and no other
        found = read(ledger, f"SELECT * FROM estimates WHERE app = '{case.name}'")
        assert sorted(due) == sorted(plain(tuple(row[name] for name in COLUMNS)) for row in found), case.name
        assert len(due) >= len(releases) > 0


def test_estimates_say_when_their_time_begins(ledger: Ledger) -> None:
    one = release("2024-03-01T00:00:00Z")
    said: dict[str, Any] = {
        "slot": {"kind": "Slots", "length": {"microseconds": 3 * HOUR}},
        "window": {"kind": "Steps", "decay": {"kind": "window", "length": 48 * HOUR}},
        "updates": {"kind": "Steps", "decay": {"kind": "window", "count": 5}},
        "all": {"kind": "Ticks", "length": {"microseconds": HOUR}},
    }
    for metric, when in said.items():
        put(ledger, "app", metric, json.dumps({"of": of("mean", "0", "1"), "at": when}), [one])
    found = {row["metric"]: row["since"] for row in read(ledger, "SELECT * FROM estimates")}
    assert found == {"slot": "2024-02-29T21:00:00Z", "window": "2024-02-28T00:00:00Z", "updates": None, "all": None}


def test_estimates_keep_odd_names_of_groups_and_ends_that_are_fractions(ledger: Ledger) -> None:
    slot = {"kind": "Slots", "length": {"microseconds": HOUR}}
    said = {"of": of("distribution", "-1/3", "5/3"), "at": slot}
    value = {"cdf": [0.25, 1.0], "histogram": [0.25, 0.75], "quantiles": {"0.5": 0.875}}
    put(ledger, "app", "m", json.dumps(said), [release(group="we\0st", value=value), release(group="a\\0b")])
    found = read(ledger, "SELECT group_name, bin_low, bin_high FROM estimates WHERE bin = 2 AND part = 'cdf'")
    assert found == [{"group_name": "we\\0st", "bin_low": pytest.approx(2 / 3), "bin_high": pytest.approx(5 / 3)}]
    assert {row["group_name"] for row in read(ledger, "SELECT group_name FROM estimates")} == {"we\\0st", "a\\\\0b"}


# ---------------------------------------------------------------- budget


def test_the_budget_stands_beside_what_each_version_is_charged(ledger: Ledger) -> None:
    # given a budget, and charges of two apps that use all of it
    with ledger.database.write() as connection:
        write_budget(connection, Fraction("0.3"), Fraction("1e-6"), unit="user-day", relation="add-remove")
    said = json.dumps({"source": {"topic": "doors"}, "of": of("mean", "0", "1")})
    for app, state in (("a", "retired"), ("b", "active"), ("c", "ended")):
        amounts: dict[str, Any] = {
            "epsilon": Fraction(1, 3),
            "charge_epsilon": Fraction("0.1"),
            "charge_delta": Fraction("1e-7"),
        }
        put(ledger, app, "m", said, unit="user-hour", state=state, **amounts)
    # then each version has a row, with the totals
    found = read(ledger, "SELECT * FROM budget ORDER BY app")
    assert [(row["app"], row["state"], row["topic"], row["statistic"]) for row in found] == [
        ("a", "retired", "doors", "mean"), ("b", "active", "doors", "mean"), ("c", "ended", "doors", "mean"),
    ]  # fmt: skip
    for row in found:
        assert (row["ledger_unit"], row["ledger_relation"]) == ("user-day", "add-remove")
        assert (row["unit"], row["relation"], row["epsilon"]) == ("user-hour", "values", 1 / 3)
        assert (row["budget_epsilon"], row["budget_delta"], row["charge_epsilon"]) == (0.3, 1e-6, 0.1)
        # and nothing is left, though 0.1 + 0.1 + 0.1 of binary numbers is more than 0.3
        assert (row["charged_epsilon"], row["left_epsilon"]) == (pytest.approx(0.3), 0)
        assert row["left_delta"] == pytest.approx(7e-7)


def test_a_ledger_without_charges_has_no_row(ledger: Ledger) -> None:
    assert read(ledger, "SELECT * FROM budget") == []


# ---------------------------------------------------------------- what the database says, and to whom


def test_the_views_have_the_columns_that_are_documented(ledger: Ledger) -> None:
    with ledger.database.read() as connection:
        seen = inspect(connection)
        assert set(seen.get_view_names()) == set(VIEWS)
        for view, (row, columns) in VIEWS.items():
            found = seen.get_columns(view)
            assert [column["name"] for column in found] == list(columns), view
            if connection.dialect.name == "postgresql":  # which keeps comments
                assert [column["comment"] for column in found] == list(columns.values())
                assert seen.get_table_comment(view) == {"text": row}


def test_a_role_that_reads_views_reads_nothing_else(postgresql_url: str) -> None:
    # given a log with a release, and a role with the rights that docs/reference/sql.md gives
    with Ledger.open(postgresql_url, migrate=True) as ledger:
        put(ledger, "app", "m", json.dumps({"of": of("mean", "0", "1")}), [release()])
    url = make_url(postgresql_url)
    role = f"reader_{url.database}"
    with psycopg.connect(url.set(drivername="postgresql").render_as_string(False), autocommit=True) as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN")
        owner.execute(f"GRANT SELECT ON releases, estimates, budget TO {role}")
    # when it reads
    database = Database(url.set(username=role).render_as_string(False))
    try:
        with database.read() as connection:
            for view in VIEWS:
                connection.execute(text(f"SELECT * FROM {view}")).all()
            assert connection.execute(text("SELECT value FROM estimates")).scalar_one() == 1.5
        # then no table and no writing is its business
        for statement in ("SELECT * FROM release", "SELECT * FROM metric_version", "DELETE FROM release"):
            with pytest.raises(LedgerError, match="permission denied"), database.write() as connection:
                connection.execute(text(statement))
    finally:
        database.close()


def test_the_views_can_be_dropped_and_made_again(ledger: Ledger) -> None:
    """As a step does that changes a table; the views hold nothing of their own."""
    with ledger.database.write() as connection:
        for view in VIEWS:
            connection.execute(text(f"DROP VIEW {view}"))
        assert not {*inspect(connection).get_view_names()} & {*VIEWS}
        for statement in statements(connection.dialect.name):
            connection.execute(text(statement))
        assert {*inspect(connection).get_view_names()} == {*VIEWS}
    assert read(ledger, "SELECT * FROM budget") == []
