"""Nothing that people or programs read holds a value, a user or the key: not output, errors, logs or SQL.

A run carries marks: a value, a user and the key that can be told from all else. Whatever happens, they stand in the
input and in the dead letters, which are internal, and nowhere else.
"""

import ast
import hashlib
import logging
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import shoal
from shoal.agents.audit import key_file
from shoal.agents.audit.session import load_config, open_session
from shoal.agents.cli.main import main
from shoal.agents.kafka.fail_stop import describe
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.worker.outbox import BoundMachine, ReleaseMachine
from shoal.stream.file_run import FileRun, Line
from shoal.stream.topic import TopicPlan, plan_topic
from tests.stream.simulation import STAMP

VALUE, USER = "123456789.123", "marked-51c7"
MARKS = [VALUE, "123456789", USER]
CONFIG = """
[audit]
url = "sqlite:///log.db"
[privacy]
key_file = "shoal.key"
epsilon = 1000
[[metric]]
name = "mean"
topic = "events"
user = "who"
value = "x"
time = "at"
group = "where"
statistic = "mean"
algorithm = "full"
range = [0, 10]
epsilon = 900
max_per_group = 16
users = 4
failure = 0.9
every = "10s"
[[metric]]
name = "second"
topic = "events"
user = "who"
value = "x"
time = "at"
statistic = "mean"
algorithm = "naive"
range = [0, 10]
epsilon = 1
max_contributions = 3
users = 4
every = "contribution"
"""


def event(n: int, number: str = VALUE) -> bytes:
    return f'{{"who":"{USER}{n % 3 or ""}","x":{number},"at":{n},"where":"here"}}'.encode()


EVENTS = [event(n) for n in range(60)]
WHO = USER.encode()
BAD = [
    event(0, f'"{VALUE}"'),
    event(0, f"[{VALUE}]"),
    event(0, f"{VALUE}.1"),
    event(0)[:-1],
    event(0).replace(b'"at":0', b'"at":"%s"' % WHO),
    event(0).replace(WHO, WHO * 40),
    event(0).replace(WHO, b"\xff" + WHO),
    event(0).replace(b"here", b"\\ud800"),
    event(0, f'{VALUE},"y":{"[" * 900}{"]" * 900}'),
    event(0, f"{VALUE}e999"),
    b'["%s", %s]' % (WHO, VALUE.encode()),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("shoal.toml").write_text(CONFIG)
    key_file.new(Path("shoal.key"))
    lines("events.jsonl", EVENTS)
    return tmp_path


def lines(name: str, events: Iterable[bytes]) -> None:
    Path(name).write_bytes(b"".join(raw + b"\n" for raw in events))


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Every library's log, down to the last level."""
    caplog.set_level(logging.DEBUG)
    for name in ("sqlalchemy", "sqlalchemy.engine", "sqlalchemy.pool", "alembic", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)
    return caplog


def shoal_says(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a command."""
    before, sys.argv = sys.argv, ["shoal", *arguments]
    try:
        main()
        status: Any = 0
    except SystemExit as end:
        status = end.code or 0
    finally:
        sys.argv = before
    out, err = capfd.readouterr()
    return int(status), out, err


def marks(folder: Path) -> list[bytes]:
    """What must not be read anywhere: as text, as bytes, and as plain digests by which a guess could be checked."""
    secret = bytes.fromhex((folder / "shoal.key").read_text().strip())
    found = [mark.encode() for mark in MARKS] + [secret.hex().encode(), secret, repr(secret).encode()]
    plan = plan_of(folder)
    found += [metric.key for metric in plan.metrics] + [metric.key.hex().encode() for metric in plan.metrics]
    pseudonyms = [metric.pseudonym(user.encode()) for metric in plan.metrics for user in (USER, USER + "1", USER + "2")]
    found += [pseudonym.encode() for pseudonym in pseudonyms]
    contents = [path.read_bytes() for path in folder.glob("*.jsonl") if path.name != "out.jsonl"] + EVENTS
    for content in contents:
        for digest in (hashlib.sha256(content), hashlib.sha256(content + b"\n"), hashlib.sha256(content.rstrip())):
            found += [digest.digest(), digest.hexdigest().encode()]
    return found


def plan_of(folder: Path, homes: int = 2) -> TopicPlan:
    config = load_config(folder / "shoal.toml")
    secret = key_file.read(folder / "shoal.key").secret
    return plan_topic(config, "events", secret, source_partitions=1, contributions_partitions=homes)


def sql_dump(folder: Path) -> bytes:
    """All of the audit log: as statements, and as the files that hold it."""
    files = b"".join(path.read_bytes() for path in sorted(folder.glob("log.db*")))
    if not (folder / "log.db").exists():
        return files
    connection = sqlite3.connect(folder / "log.db")
    try:
        return files + "\n".join(connection.iterdump()).encode()
    finally:
        connection.close()


def assert_unmarked(folder: Path, *texts: str | bytes) -> None:
    content = b"\n".join(text.encode() if isinstance(text, str) else text for text in texts)
    content += sql_dump(folder) + b"".join(path.read_bytes() for path in folder.glob("out.jsonl"))
    for mark in marks(folder):
        assert mark not in content


RUN = ("run", "shoal.toml", "--input", "events.jsonl", "--output", "out.jsonl")


def test_a_run_and_what_is_said_of_it(folder, capfd, heard):
    # given all commands that need no Kafka, on good input
    said = []
    for arguments in (RUN, (*RUN, "--json"), ("run", *RUN[1:4], "--output", "-"), ("budget", "shoal.toml", "--json")):
        status, out, err = shoal_says(capfd, *arguments)
        assert (status, out + err != "") == (0, True)
        said += [out, err]
    # then there are releases, activations and an ended version, and none of it is marked
    dump = sql_dump(folder)
    assert dump.count(b'INSERT INTO "release"') > 10
    assert dump.count(b'INSERT INTO "activation"') >= 1
    assert b"ended" in dump
    assert_unmarked(folder, *said, heard.text, (folder / "shoal.key.used").read_bytes())


def test_bad_input_is_named_by_its_reason_and_place_only(folder, capfd, heard):
    lines("events.jsonl", [*BAD, *EVENTS])
    status, out, err = shoal_says(capfd, *RUN, "--dead-letters", "dead.letters")
    assert status == 0
    assert "dead_letters" in out + err
    # the records are in the dead letters, and only there
    assert Path("dead.letters").read_bytes().count(VALUE.encode()) >= len(BAD) - 1
    assert_unmarked(folder, out, err, heard.text)


def test_refusals_and_faults_say_nothing_of_values(folder, capfd, heard):
    # given a run that ended, and everything that then may be refused
    assert shoal_says(capfd, *RUN)[0] == 0
    lines("other.jsonl", [event(n, "9") if n % 3 else event(n) for n in range(60)])
    lines("longer.jsonl", [*EVENTS, event(99)])
    lines("shorter.jsonl", EVENTS[:30])
    Path("twice.csv").write_text(f"who,who\n{USER},{VALUE}\n")
    Path("cut.csv").write_text(f'who,x,at,where\n{USER},"{VALUE}' + "0" * (1 << 24))
    Path("cut.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00" + b"\x00" * 6 + VALUE.encode() + USER.encode())
    said = []
    for name in ("other.jsonl", "longer.jsonl", "shorter.jsonl", "twice.csv", "cut.csv", "cut.jsonl.gz", "none.jsonl"):
        status, out, err = shoal_says(capfd, "run", "shoal.toml", "--input", name, "--output", "out.jsonl")
        assert (status, err.count("\n"), err[:7]) == (1, 1, "shoal: "), name
        said += [out, err]
    (folder / "cut.csv").unlink()
    assert_unmarked(folder, *said, heard.text)


def test_a_bug_is_named_by_its_place_and_not_by_its_text(folder, capfd, monkeypatch):
    """Regression: an unexpected exception of `shoal run` came with its text, which often repeats what it choked on."""

    def choke(self: FileRun, *lines: object, end: bool = True) -> Iterator[None]:
        raise ValueError(f"invalid literal for int() with base 10: '{VALUE}' of {USER}")

    monkeypatch.setattr(FileRun, "outputs", choke)
    monkeypatch.setattr(FileRun, "outputs_of", choke)  # what the kernel's lane calls
    status, out, err = shoal_says(capfd, *RUN)
    assert status == 1
    assert re.fullmatch(r"shoal: this command: unexpected ValueError at .*; this is a bug; .*\n", err)
    assert_unmarked(folder, out, err)


def test_a_worker_that_fails_stops_without_a_word_on_what_it_read():
    def failing() -> Iterator[BaseException]:
        for action in (
            lambda: int(f"{VALUE}x{USER}"),
            lambda: {}[USER],  # type: ignore[index]
            lambda: f"{USER}\xff".encode("latin-1").decode("utf-8"),
            lambda: float(USER),
        ):
            try:
                action()
            except Exception as error:
                yield error

    found = list(failing())
    assert len(found) == 4
    for error in found:
        line = describe(error, "topic events, partition 3")
        assert "\n" not in line
        assert not any(mark in line for mark in MARKS)


# ---------------------------------------------------------------- Kafka


def test_public_topics_hold_no_mark_and_internal_ones_no_more_than_they_need(folder):
    # given what workers write for the same events
    settings, plan = KafkaSettings("localhost:9", "shoal"), plan_of(folder)
    bound = BoundMachine(settings, plan, 0)
    homes = [ReleaseMachine(settings, [plan], home, idle_after=10**7) for home in range(2)]
    bound.start(0)
    for machine in homes:
        machine.start(0)
    raws = [*BAD, *EVENTS]
    bound.process([Line(n, raw, timestamp=STAMP) for n, raw in enumerate(raws)], len(raws))
    header = (("shoal-clock", b"2020-01-01T00:00:00Z"),)
    bound.process([Line(len(raws), None, timestamp=STAMP, headers=header)], len(raws) + 1)
    topics: dict[str, bytes] = {}
    outbox = bound.outbox()
    assert outbox is not None
    for (topic, home), records in outbox.records.items():
        topics[topic] = topics.get(topic, b"") + repr(records).encode()
        if topic == settings.contributions:
            homes[home].process([Line(n, value) for n, (_, value, _) in enumerate(records)], len(records))
    for machine in homes:
        while machine.pending():
            machine.work()
        made = machine.outbox()
        assert made is not None
        for (topic, _), published in made.records.items():
            topics[topic] = topics.get(topic, b"") + repr(published).encode()
    # then releases and activations hold no mark, not even a pseudonym
    assert {settings.releases, settings.activations, settings.contributions, settings.dead_letters} == topics.keys()
    for mark in marks(folder):
        assert mark not in topics[settings.releases] + topics[settings.activations]
    # and contributions no user, no key and nothing unclipped
    secret = [mark for mark in marks(folder) if mark not in topics[settings.contributions]]
    assert {USER.encode(), VALUE.encode(), (folder / "shoal.key").read_text().strip().encode()} <= set(secret)
    assert USER.encode() in topics[settings.dead_letters]


# ---------------------------------------------------------------- in memory


def test_no_repr_shows_a_key_or_a_password(folder):
    with open_session(folder / "shoal.toml") as session:
        plan = plan_of(folder, homes=1)
        runner = FileRun(plan)
        for _ in runner.outputs(Line(n, raw) for n, raw in enumerate(EVENTS)):
            pass
        shown = [repr(session), repr(session.key), repr(plan), str(session.config), repr(plan.metrics)]
        for metric in plan.metrics:
            groups: Any = metric.groups()
            releaser = groups.releaser("here")
            counters = getattr(releaser, "_counters", None) or [releaser._counter]
            shown += [repr(releaser), repr(metric.parameters), *map(repr, counters)]
    settings = KafkaSettings("localhost:9", "shoal", client={"sasl_plain_password": USER})
    secret = bytes.fromhex((folder / "shoal.key").read_text().strip())
    for text in [*shown, repr(settings)]:
        for key in (secret, *(metric.key for metric in plan.metrics)):
            assert key.hex() not in text
            assert repr(key)[2:-1] not in text
        assert USER not in text


# ---------------------------------------------------------------- sources of anything but events and key

PURE = ("mechanisms", "models", "stream")
FORBIDDEN = {"random", "secrets", "time", "os", "uuid", "logging", "structlog", "socket", "threading", "locale"}


def test_what_decides_a_release_knows_no_clock_no_chance_no_environment_and_no_log():
    """Grep, for what no test can run: a draw of chance would make two releases of one name, a log could hold values."""
    root = Path(shoal.__file__).parent
    for path in sorted(path for package in PURE for path in (root / package).rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            roots = {name.partition(".")[0] for name in names}
            allowed = {"os"} if path.name == "file.py" else set()  # which settings the environment overrides
            assert not roots & (FORBIDDEN - allowed), f"{path.name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                assert called not in {"print", "hash", "id", "input", "warnings.warn"}, f"{path.name}:{node.lineno}"
                assert not called.endswith((".now", ".today", ".utcnow", "np.random")), f"{path.name}:{node.lineno}"


def test_chance_is_used_for_keys_and_names_of_logs_alone():
    root = Path(shoal.__file__).parent
    using = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(
            r"^\s*(import|from) (random|secrets|uuid)\b|np\.random|numpy\.random|os\.urandom", path.read_text(), re.M
        )
    }
    # the broker's ports and folders, the salt under which a replay remembers what it saw, and the key of a plan on
    # real values, which is thrown away
    others = {"agents/broker/process.py", "agents/audit/replay/fingerprints.py", "agents/plan/observed.py"}
    others |= {"agents/audit/ledger.py"}  # the id of a file run
    others |= {"agents/lost_records.py"}  # the nonce of a sealed offset
    others |= {"agents/dashboard/server.py"}  # the token of who may look at a page
    simulated = {path for path in using if path.startswith("agents/simulate/")}  # buses of nobody: no noise of anything
    assert using <= {"agents/audit/key_file.py", "agents/audit/database.py"} | others | simulated
