"""`shoal.read`: from files, audit logs and topics; what is wrong is said in one line."""

import gzip
import json
import pickle
import subprocess
import sys
import threading
from contextlib import closing
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import orjson
import pytest
from sqlalchemy import text
from typer.testing import CliRunner

import shoal
from shoal.agents.audit.database import Database
from shoal.agents.cli.main import app
from shoal.agents.reading.releases import Releases
from shoal.agents.reading.table import COLUMNS
from shoal.agents.reading.topics import _Listener
from shoal.models.errors import ConfigError, InputError, KafkaError, LedgerError, MissingExtra
from shoal.models.extras import MODULES
from shoal.models.records import activation_bytes
from shoal.models.releases.record import Release
from tests.support.kafka import Kafka, Record
from tests.support.releases import lines, release, town
from tests.support.workers import wait_until

CONFIG = """
[kafka]
brokers = "{brokers}"
app = "{app}"
[audit]
url = "sqlite:///log.db"
[privacy]
key_file = "shoal.key"
epsilon = 4
[[metric]]
name = "basket"
topic = "{app}-purchases"
user = "customer"
value = "amount"
time = "at"
group = "country"
statistic = "sum"
range = [0, 200]
every = "1d"
decay = {{ kind = "window", length = "7d" }}
max_contributions = 8
epsilon = 1
"""


def file_of(path: Path, *releases: dict[str, Any]) -> str:
    path.write_bytes(lines(list(releases)))
    return str(path)


def test_to_import_shoal_loads_nothing_else():
    code = "import sys, shoal; print([name for name in sys.modules if name.startswith('shoal.') or name == 'numpy'])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert told.stdout.strip() == "[]"
    assert {"read", "Release", "Releases"} <= set(dir(shoal))
    with pytest.raises(AttributeError, match="no attribute 'write'"):
        shoal.write  # noqa: B018


def test_a_file_is_read_in_the_order_of_its_times(tmp_path):
    given = [release("b", 2, 5.0), release("a", 1, 4.0, group="x"), release("a", 1, 3.0, group="w")]
    found = shoal.read(file_of(tmp_path / "r.jsonl", *given))
    assert [(each.metric, each.group, each.seq) for each in found] == [("a", "w", 1), ("a", "x", 1), ("b", None, 2)]
    assert (found.metrics, found.groups, len(found)) == (["a", "b"], ["w", "x"], 3)
    assert repr(found) == "<3 releases of a, b, from 2026-03-02 to 2026-03-03>"
    assert isinstance(found[1:], Releases)
    assert found[1:][0] is found[1]
    assert pickle.loads(pickle.dumps(found[0])) == found[0]


def test_a_packed_file_is_the_same(tmp_path):
    content = lines(town(3, 5))
    (tmp_path / "r.jsonl").write_bytes(content)
    (tmp_path / "r.jsonl.gz").write_bytes(gzip.compress(content))
    plain, packed = (list(shoal.read(tmp_path / name)) for name in ("r.jsonl", "r.jsonl.gz"))
    assert plain == packed
    assert len(plain) == content.count(b"\n")


def test_only_what_is_wanted(tmp_path):
    path = file_of(tmp_path / "r.jsonl", *town(20, 3))
    found = shoal.read(path, metric="sales", group=["region 1", "region 2"], since="2026-03-05", until=date(2026, 3, 8))
    assert {(each.group, each.at.day) for each in found} == {(f"region {n}", day) for n in (1, 2) for day in (6, 7, 8)}
    everything = shoal.read(path)
    assert list(everything.only("sales", ["region 1", "region 2"], "2026-03-05", "2026-03-08")) == list(found)
    early = datetime(2026, 3, 2, 1, tzinfo=timezone(timedelta(hours=1)))
    assert shoal.read(path, until=early, metric="basket")[0].at == datetime(2026, 3, 2, tzinfo=timezone.utc)  # noqa: UP017
    assert not shoal.read(path, version=2)
    assert repr(shoal.read(path, version=2)) == "<no releases>"


def test_the_latest_is_of_the_newest_version(tmp_path):
    given = [
        release("a", 1, 1.0, group="x"),
        release("a", 2, 2.0, group="x"),
        release("a", 3, 9.0, group="y", version=1),
    ]
    newer = release("a", 1, 5.0, group="x", version=2)
    last = shoal.read(file_of(tmp_path / "r.jsonl", *given, newer)).latest()
    assert [(each.group, each.version, each.value) for each in last] == [("x", 2, 5.0)]


def test_a_release_that_is_there_twice_is_read_once(tmp_path):
    one = release("a", 1, 1.0)
    assert len(shoal.read(file_of(tmp_path / "r.jsonl", one, one))) == 1
    with pytest.raises(InputError, match="release a/1//1 has two values"):
        shoal.read(file_of(tmp_path / "r.jsonl", one, one | {"value": 2.0}))


def test_activations_are_no_releases(tmp_path):
    begun = {"metric": "a", "group": None, "version": 1, "level": 0, "at": "2026-01-05T00:00:00Z", "prior": 1.0}
    path = file_of(tmp_path / "r.jsonl", begun, release("a", 1, 1.0), begun)
    assert len(shoal.read(path)) == 1
    (found,) = shoal.activations(path)
    assert (found.metric, found.kind, found.level, found.prior) == ("a", "level", 0, 1.0)
    assert shoal.activations(path, since="2026-01-05") == []


WRONG: list[tuple[str, bytes, str]] = [
    ("cut.jsonl.gz", gzip.compress(lines(town(2, 2)))[:-20], "its gzip data is cut off"),
    ("plain.jsonl.gz", b"{}\n", "its data is not gzip"),
    ("odd.jsonl", lines([release("a", 1, 1.0)]) + b'{"a": 1}\n', "line 2 is no release"),
    ("events.csv", b"user,amount\n1,2\n", "line 1 is no release"),
]


@pytest.mark.parametrize(("name", "content", "said"), WRONG, ids=[name for name, *_ in WRONG])
def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said) as told:
        shoal.read(tmp_path / name)
    assert str(told.value).startswith(str(tmp_path / name))


def test_a_slip_is_an_error_and_no_empty_answer(tmp_path):
    path = file_of(tmp_path / "r.jsonl", release("basket", 1, 1.0))
    slips: list[tuple[dict[str, Any], str]] = [
        ({"source": path, "metric": "baskte"}, "no metric 'baskte'; there are: basket"),
        ({"source": path, "since": "soon"}, "since: 'soon' is no time"),
        ({"source": path, "since": "2026-02-01", "until": "2026-01-01"}, "is not before until"),
        ({"source": path, "app": "shop"}, "leave app out"),
        ({"source": path, "topic": "shop.releases"}, "and not both"),
        ({"brokers": "localhost:9092"}, "nothing to read"),
        ({"source": path, "follow": True}, "only a topic can be followed"),
        ({"source": str(tmp_path / "none.jsonl")}, "No such file"),
    ]
    for wrong, said in slips:
        with pytest.raises(InputError, match=said):
            shoal.read(**wrong)
    with pytest.raises(ConfigError):
        shoal.read(tmp_path / "none.toml")


@pytest.fixture
def shop(tmp_path, monkeypatch, database_url) -> str:
    """A folder with an audit log, and the releases that a file run has put into it."""
    monkeypatch.chdir(tmp_path)
    Path("shop.toml").write_text(
        CONFIG.format(brokers="x", app="shop")
        .replace('[kafka]\nbrokers = "x"\napp = "shop"\n', "")
        .replace("sqlite:///log.db", database_url)
    )
    events = [
        {"customer": user, "amount": 20, "at": f"2026-01-{day:02}T10:00:00Z", "country": ("BE", "=1+1")[user % 2]}
        for day in range(1, 12) for user in range(6)
    ]  # fmt: skip
    Path("events.jsonl").write_bytes(b"".join(orjson.dumps(event) + b"\n" for event in events))
    run = CliRunner().invoke(app, ["key", "new", "shoal.key"])
    assert run.exit_code == 0, run.output
    migrated = CliRunner().invoke(app, ["migrate", "shop.toml"])
    assert migrated.exit_code == 0, migrated.output
    made = CliRunner().invoke(app, ["run", "shop.toml", "--input", "events.jsonl", "--output", "releases.jsonl"])
    assert made.exit_code == 0, made.output
    return str(database_url)


def test_the_audit_log_has_the_same_as_the_file(shop):
    logged, filed = shoal.read(shop), shoal.read("releases.jsonl")
    assert len(logged) == len(filed) > 10
    assert [each.id for each in logged] == [each.id for each in filed]
    assert all(each.since is None for each in filed)
    assert all(each.since is not None and each.at - each.since == timedelta(days=7) for each in logged)
    assert list(shoal.read("shop.toml")) == list(logged)
    assert list(shoal.read("shop.toml", group="BE")) == list(logged.only(group="BE"))
    assert shoal.activations(shop) == shoal.activations("shop.toml") == []


def test_what_is_wrong_with_a_log_is_said(shop, tmp_path):
    with pytest.raises(InputError, match="audit log, app shoal: no metric 'x'; there are: basket"):
        shoal.read(shop, metric="x")
    with pytest.raises(LedgerError, match="it has no app 'other'; name one of: shoal"):
        shoal.read(shop, app="other")
    with pytest.raises(LedgerError, match="does not exist"):
        shoal.read("sqlite:///none.db")
    (tmp_path / "no.db").write_bytes(b"no database, and longer than a header of SQLite would be" * 20)
    with pytest.raises(LedgerError, match="no SQLite database"):
        shoal.read(f"sqlite:///{tmp_path}/no.db")


def test_a_log_of_another_version_is_refused(shop):
    with closing(Database(shop)) as database, database.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '999'"))
    with pytest.raises(LedgerError, match="newer than this shoal"):
        shoal.read(shop)


# ---------------------------------------------------------------- tables


def test_arrow_polars_and_pandas_have_the_same_rows(tmp_path):
    several = {"value": [1.5, None], "noise_sd": [1, None], "low": [0, None], "high": [3, None]}
    given = [
        *town(3, 2), release("pair", 1, None) | several, release("none", 1, None),
        release("both", 1, {"mean": 3.0, "variance": 1}, low={"mean": 2}, withheld={"samples": 1, "share": 0.5}),
    ]  # fmt: skip
    found = shoal.read(file_of(tmp_path / "r.jsonl", *given))
    arrow, polars, pandas = found.to_arrow(), found.to_polars(), found.to_pandas()
    assert arrow.column_names == polars.columns == list(pandas.columns) == list(COLUMNS)
    rows = arrow.to_pylist()
    assert rows == polars.to_dicts()
    assert len(rows) == len(pandas) == len(given) + 2
    of_pandas = pandas.astype(object).where(pandas.notna(), None).to_dict("records")
    assert [dict(row) for row in of_pandas] == rows
    parts = [(row["part"], row["coordinate"]) for row in rows if row["metric"] in ("pair", "both")]
    assert parts == [("mean", None), ("variance", None), ("value", 1), ("value", 2)]
    assert str(arrow.schema.field("until").type) == "timestamp[us, tz=UTC]"


@pytest.mark.parametrize("name", ["arrow", "polars", "pandas"])
def test_nothing_is_a_table_too(tmp_path, name):
    found = shoal.read(file_of(tmp_path / "r.jsonl"))
    table = getattr(found, f"to_{name}")()
    assert len(table) == 0
    assert len(table.columns) == len(COLUMNS)


@pytest.mark.parametrize("name", ["arrow", "polars", "pandas"])
def test_who_lacks_an_extra_reads_what_to_install(tmp_path, monkeypatch, name):
    found = shoal.read(file_of(tmp_path / "r.jsonl", release("a", 1, 1.0)))
    for module in MODULES[name]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"to_{name} needs .*: pip install 'shoal\[{name}\]'"):
        getattr(found, f"to_{name}")()


# ---------------------------------------------------------------- topics


class Topic:
    def __init__(self, kafka: Kafka) -> None:
        self.kafka, self.app = kafka, kafka.name("read")
        self.name = f"{self.app}.releases"
        kafka.create_topic(self.name, 2)

    def publish(self, *records: bytes, partition: int = 0) -> None:
        self.kafka.produce(self.name, [Record(b"", one, partition=partition) for one in records], self.kafka.name())


def encoded(*releases: dict[str, Any]) -> list[bytes]:
    return [json.dumps(one).encode() for one in releases]


def test_a_topic_is_read_to_its_end(kafka, tmp_path):
    topic = Topic(kafka)
    assert len(shoal.read(brokers=kafka.bootstrap, topic=topic.name)) == 0
    topic.publish(*encoded(release("basket", 1, 1.0, group="BE")))
    topic.publish(*encoded(release("basket", 1, 2.0, group="FR"), release("basket", 2, 3.0, group="FR")), partition=1)
    found = shoal.read(brokers=kafka.bootstrap, topic=topic.name)
    assert [(each.group, each.value) for each in found] == [("BE", 1.0), ("FR", 2.0), ("FR", 3.0)]
    kafka.create_topic(f"{topic.app}.activations", 1)
    begun = activation_bytes("basket", 1, None, 3, 0, 1.5, 0.25, 7)
    kafka.produce(f"{topic.app}.activations", [Record(b"", begun)], kafka.name())
    config = tmp_path / "shop.toml"
    config.write_text(CONFIG.format(brokers=kafka.bootstrap, app=topic.app))
    of_app = shoal.read(config, group="FR")
    assert [each.value for each in of_app] == [2.0, 3.0]
    assert all(each.since is not None and each.at - each.since == timedelta(days=7) for each in of_app)
    (found_level,) = shoal.activations(config)
    assert (found_level.level, found_level.prior) == (3, 1.5)
    with pytest.raises(InputError, match="no metric 'x'; there are: basket"):
        shoal.read(config, metric="x")


def test_what_others_write_into_a_topic_is_left_out_and_said(kafka):
    topic = Topic(kafka)
    topic.publish(b"{}", b"[]", *encoded(release("basket", 1, 1.0)))
    with pytest.warns(UserWarning, match="a record is no release, and left out") as told:
        found = shoal.read(brokers=kafka.bootstrap, topic=topic.name)
    assert (len(found), len(told)) == (1, 1)


def test_a_topic_is_followed_until_nobody_asks(kafka):
    topic = Topic(kafka)
    topic.publish(*encoded(release("basket", 1, 1.0), release("other", 1, 1.0)))
    following = shoal.read(brokers=kafka.bootstrap, topic=topic.name, metric="basket", follow=True)
    assert next(following).seq == 1
    topic.publish(*encoded(release("basket", 2, 2.0)))
    assert next(following).seq == 2
    following.close()
    wait_until(
        lambda: not any(thread.name == "shoal.read" for thread in threading.enumerate()),
        20,
        lambda: "a thread reads on",
    )


def test_in_a_running_event_loop_it_reads_as_well(kafka):
    import asyncio

    topic = Topic(kafka)
    topic.publish(*encoded(release("basket", 1, 1.0)))

    async def cell() -> int:
        return len(shoal.read(brokers=kafka.bootstrap, topic=topic.name))

    assert asyncio.run(cell()) == 1


def test_a_topic_that_is_not_there_and_a_broker_that_is_away(kafka):
    with pytest.raises(KafkaError, match="no topic no-such.releases"):
        shoal.read(brokers=kafka.bootstrap, topic="no-such.releases")
    with pytest.raises(KafkaError, match="no topic no-such.releases"):
        next(shoal.read(brokers=kafka.bootstrap, topic="no-such.releases", follow=True))
    with pytest.raises(KafkaError, match="127.0.0.1:1"):
        shoal.read(brokers="127.0.0.1:1", topic="a.releases")
    with pytest.raises(InputError, match="brokers: address 1 has no port; write kafka-1:9092"):
        shoal.read(brokers="kafka-1", topic="a.releases")


def test_a_release_is_frozen(tmp_path):
    (found,) = shoal.read(file_of(tmp_path / "r.jsonl", release("a", 1, 1.0)))
    assert isinstance(found, Release)
    with pytest.raises(AttributeError):
        found.value = 2.0


def test_a_table_is_written_as_csv(tmp_path):
    found = shoal.read(
        file_of(tmp_path / "r.jsonl", release("a", 1, 1.5, group="@x"), release("a", 2, None, group="@x"))
    )
    found.to_csv(tmp_path / "r.csv")
    header, first, second = (tmp_path / "r.csv").read_text("utf-8").splitlines()
    assert header == ",".join(COLUMNS)
    assert first.startswith(
        "a,1,'@x,1,a/1/@x/1,,2026-03-02T00:00:00Z,value,,,,1.5,0.5,0.5,2.5,10,,,1.0,0.0,user,values,"
    )
    assert second.startswith("a,1,'@x,2,a/1/@x/2,,2026-03-03T00:00:00Z,value,,,,,,,,20,")
    found.to_csv(tmp_path / "plain.csv", guarded=False)
    assert ",@x," in (tmp_path / "plain.csv").read_text("utf-8")


def test_brokers_that_are_away_are_waited_for_with_one_warning():
    """And what has to be corrected ends the iterator."""
    listener = _Listener("shop.releases", lambda found: None)
    for _ in range(2):
        with pytest.warns(UserWarning, match="no broker of b:9092 answers; reading goes on when one does"):
            listener.away("no broker of b:9092 answers", passes=True)
        listener.away("no broker of b:9092 answers", passes=True)  # a warning would be an error
        listener.back()
    with pytest.raises(KafkaError, match="no topic"):
        listener.away("no topic shop.releases", passes=False)
