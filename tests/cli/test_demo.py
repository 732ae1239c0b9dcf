"""`shoal demo`, as one runs it: a real Kafka, a worker, all purchases, an audit; and it leaves nothing behind."""

import fcntl
import io
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from rich.console import Console
from typer.testing import CliRunner

from shoal.agents.audit.session import load_config
from shoal.agents.broker import jars
from shoal.agents.broker.process import Broker
from shoal.agents.cli.main import app
from shoal.agents.demo import folder, processes, show
from shoal.agents.demo.processes import Audited
from shoal.agents.demo.progress import DemoProgress
from shoal.agents.demo.scene import Conclusion
from shoal.agents.demo.shop import presence
from shoal.agents.demo.shop.outcome import summary
from shoal.agents.demo.shop.purchases import FILE, Purchases
from shoal.agents.demo.shop.scene import ShopScene
from shoal.agents.demo.show import Shown, run_demo
from shoal.agents.demo.view import PlainView, TerminalView, gauge
from shoal.models.errors import AuditError, ConfigError, InputError, KafkaError
from tests.support.workers import PATIENCE

SHOAL = (sys.executable, "-m", "shoal")
# A deployment's settings in the environment must not lead a demo anywhere else.
ENVIRONMENT = os.environ | {"SHOAL_KAFKA_BROKERS": "127.0.0.1:1", "SHOAL_AUDIT_URL": "sqlite:////nowhere/shoal.db"}
LEVELS = [2, 3, 4, 5]  # of `basket-full`; level 6 takes more purchases than there are


class Demo(NamedTuple):
    """A demo that has ended."""

    folder: Path
    output: str
    remarks: str

    @property
    def last(self) -> dict[str, Any]:
        found: dict[str, Any] = orjson.loads(self.output.splitlines()[-1])
        return found


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    out = tmp_path_factory.mktemp("demo") / "out"
    command = [*SHOAL, "demo", "--json", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    return Demo(out, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def shop() -> ShopScene:
    return ShopScene.open(Path())


@pytest.fixture(scope="module")
def progress(demo: Demo, shop: ShopScene) -> DemoProgress:
    """What the demo had seen at its end."""
    config = load_config(demo.folder / "shoal.toml")
    found = DemoProgress(config, shop.count, shop.due(config), sent=69_659)
    for line in (demo.folder / "releases.jsonl").read_bytes().splitlines():
        found.take(line)
    for level in LEVELS:
        activation = {"metric": "basket-full", "level": level, "at": f"1997-0{level}-01T00:00:00Z"}
        found.take(orjson.dumps(activation | {"version": 1, "group": None}))
    ready = {"metric": "basket", "level": 0, "at": "1997-01-19T00:00:00Z", "prior": 21.875, "samples": 4184}
    found.take(orjson.dumps(ready | {"version": 1, "group": None}))
    return found


def test_it_says_one_line_of_json(demo: Demo) -> None:
    assert demo.output.count("\n") == 1
    assert list(demo.last) == ["events", "releases", "verified", "picture", "dashboard", "file", "final"]
    assert (demo.last["events"], demo.last["verified"]) == (69_659, True)


def test_each_metric_releases_on_each_of_the_546_days(demo: Demo) -> None:
    releases = [orjson.loads(line) for line in Path(demo.last["file"]).read_bytes().splitlines()]
    assert len(releases) == demo.last["releases"] == 2 * 546
    assert releases == sorted(releases, key=lambda one: (one["at"], one["metric"], one["seq"]))
    last = {one["metric"]: one for one in releases}
    for metric, estimate in demo.last["final"]["estimates"].items():
        assert estimate == {name: last[metric][name] for name in estimate}
        assert last[metric]["at"] == demo.last["final"]["at"] == "1998-07-01T00:00:00Z"


def test_the_true_mean_is_that_of_the_file_and_the_estimate_is_near(demo: Demo) -> None:
    final = demo.last["final"]
    assert final["true_mean"] == pytest.approx(35.893648)
    # Six standard deviations of the noise, and what cap and clip range leave out.
    assert abs(final["estimates"]["basket"]["value"] - 35.9) < 6 * final["estimates"]["basket"]["noise_sd"] + 5


def test_the_releases_are_those_of_shoal_run(demo: Demo, tmp_path: Path) -> None:
    # given the demo's configuration and key, with an audit log of their own
    for name in ("shoal.toml", "shoal.key"):
        shutil.copy(demo.folder / name, tmp_path)
    # when the same purchases go through a file run
    command = [
        *SHOAL,
        "run",
        str(tmp_path / "shoal.toml"),
        "--input",
        str(FILE),
        "--output",
        str(tmp_path / "releases"),
    ]
    subprocess.run(command, capture_output=True, check=True)
    # then it makes the same bytes
    assert (tmp_path / "releases").read_bytes() == (demo.folder / "releases.jsonl").read_bytes()


def test_the_other_relation_is_shown_beside_it(demo: Demo, shop: ShopScene) -> None:
    # given a run over the same purchases, by a configuration and with a log of its own
    hidden = presence.outcome(demo.folder, shop.purchases)
    assert hidden is not None
    assert [release.seq for release in hidden.releases] == list(range(1, 547))
    # then its last estimate is near the truth, and it counts with noise what the demo's other metrics count exactly
    last = demo.last["final"]["add_remove"]
    assert last == {name: getattr(hidden.last, name) for name in last}
    kept = 69_659 - shop.purchases.over_cap(16)
    assert 0 < abs(last["count"] - kept) < 6 * last["count_sd"]
    assert abs(last["value"] - 35.9) < 6 * last["noise_sd"] + 3
    text = "\n".join(summary([hidden]))
    assert "two-sided (relation add-remove), at most 16 purchases per customer, epsilon 1 per customer" in text
    assert f"purchases, where {kept:,} are left" in text


@pytest.mark.slow
def test_a_run_beside_the_demo_that_fails_is_an_error_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presence, "CONFIG", presence.CONFIG.replace("end = 1998-07-01\n", ""))
    with pytest.raises(InputError, match=r"the run by relation add-remove failed: .*has no end"):
        with presence.made(tmp_path):
            pass
    assert presence.outcome(tmp_path, Purchases.read()) is None


def test_it_ends_with_a_page_of_all_that_was_released(demo: Demo) -> None:
    page = Path(demo.last["dashboard"]).read_text("utf-8")
    assert Path(demo.last["dashboard"]).parent == demo.folder
    assert "All 1,092 releases were confirmed bit for bit" in page
    assert '"releases":1092' in page
    # with the activations, which are in no file
    assert re.search(r'"activations":\[\[8\d+,"",', page)


def test_the_picture_is_a_png_to_look_at(demo: Demo) -> None:
    content = Path(demo.last["picture"]).read_bytes()
    assert content.startswith(b"\x89PNG\r\n")
    width, height = struct.unpack(">II", content[16:24])
    assert 1000 <= width <= 2000
    assert 700 <= height <= 1500
    assert 30_000 < len(content) < 1_000_000


def test_without_a_terminal_it_says_plain_lines_on_stderr(demo: Demo) -> None:
    assert "\x1b" not in demo.remarks
    assert "true mean" in demo.remarks
    assert "worker" in demo.remarks


def test_the_worker_ended_in_order(demo: Demo) -> None:
    assert b'"stopped"' in (demo.folder / "worker.log").read_bytes().splitlines()[-1]


def test_the_summary_says_what_activated_and_what_did_not(
    shop: ShopScene, progress: DemoProgress, tmp_path: Path
) -> None:
    conclusion = shop.conclude(progress, tmp_path, "")
    text = Shown(progress, Audited(True, ""), conclusion, tmp_path).text
    assert progress.complete
    assert "69,659 purchases of 23,570 customers" in text
    assert "1,092 releases, each confirmed bit for bit" in text
    assert "4,184 customers had come on 19 Jan 1997" in text
    assert "around a private centre of 21.88 dollars" in text
    assert "purchases are left out, beyond those of a customer that it found worth their noise" in text
    assert "656 purchases beyond a customer's first 64" in text
    assert "activated: 2 on 1 Feb 1997, 3 on 1 Mar 1997, 4 on 1 Apr 1997, 5 on 1 May 1997" in text
    assert "level 6 never: it takes 36,480 purchases" in text
    assert "NOT all confirmed" in Shown(progress, Audited(False, ""), conclusion, tmp_path).text


# ---------------------------------------------------------------- the end, however it comes


def members(group: int) -> list[int]:
    """Processes of a group that have not ended."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, process_group, *_ = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(process_group) == group and state != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.fixture
def half_way(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A demo in a process group of its own, in the middle of the purchases."""
    (tmp_path / folder.MARKER).touch()
    (tmp_path / "shoal.key").write_text("of an earlier demo")
    process = subprocess.Popen(
        [*SHOAL, "demo", "--json", "--out", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if b"events sent" in line:
                break
        assert len(members(process.pid)) == 3  # the demo, Java, the worker
        yield process
    finally:
        for pid in members(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("how", ["ctrl-c", pytest.param("sigterm", marks=pytest.mark.long)])
def test_it_stops_what_it_started_when_it_is_stopped(
    half_way: subprocess.Popen[bytes], how: str, tmp_path: Path
) -> None:
    # when Ctrl-C reaches the group, or SIGTERM the demo alone
    if how == "ctrl-c":
        os.killpg(half_way.pid, signal.SIGINT)
    else:
        half_way.terminate()
    # then it ends soon, says nothing on stdout, and none of its processes is left
    out, _ = half_way.communicate(timeout=120 * PATIENCE)
    assert (half_way.returncode, out) == (130, b"")
    assert members(half_way.pid) == []
    # and the folder of the earlier demo was made anew
    assert (tmp_path / "shoal.key").read_text() != "of an earlier demo"


@pytest.mark.long
def test_a_kafka_that_ends_is_named(half_way: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """Its clients would wait for it for ever."""
    (java,) = (pid for pid in members(half_way.pid) if b"kafka.Kafka" in Path(f"/proc/{pid}/cmdline").read_bytes())
    os.kill(java, signal.SIGKILL)
    _, remarks = half_way.communicate(timeout=120 * PATIENCE)
    last = remarks.decode().splitlines()[-1]
    assert last == f"shoal: Kafka ended by itself; the reason may be in {tmp_path / 'kafka' / 'broker.log'}"
    assert (half_way.returncode, members(half_way.pid)) == (1, [])


def test_an_unconfirmed_audit_is_a_failure_that_says_why(demo: Demo) -> None:
    # given that the demo's Kafka is gone, so that nothing can be computed again
    audited = processes.audit(demo.folder / "shoal.toml", 1092)
    assert not audited.ok
    assert audited.complaint.startswith("audit replay: ")
    # and an auditor who confirms fewer releases than there are does not confirm them
    assert "releases confirmed" in processes._first_finding({"confirmed": 7})
    assert processes._first_finding({"findings": [{"where": "basket", "message": "differs"}]}) == "basket: differs"
    assert processes._last_object(b"no JSON") == {}


def test_a_demo_whose_audit_fails_is_a_failure(
    demo: Demo, progress: DemoProgress, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a demo of which an auditor says that a release is not what it must be
    audited = Audited(False, "audit replay: basket: differs")
    shown = Shown(
        progress, audited, Conclusion(["all"], {"picture": Path("picture.png")}, demo.last["final"]), demo.folder
    )
    monkeypatch.setattr(show, "run_demo", lambda _scene, _out, _view: shown)
    # then the last line says so, and so does the status
    done = CliRunner().invoke(app, ["demo", "--json", "--out", str(demo.folder)])
    assert orjson.loads(done.stdout) == demo.last | {"verified": False}
    assert isinstance(done.exception, AuditError)
    assert "basket: differs" in str(done.exception)


@pytest.mark.slow
def test_a_worker_that_ends_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    with processes.worker(tmp_path / "missing.toml", tmp_path / "log", Broker(data=tmp_path)) as worker:
        worker._process.wait(20 * PATIENCE)
        with pytest.raises(KafkaError, match=r"the worker ended with status 1: .*missing.toml"):
            worker.check()
        assert not worker.ready
        assert worker.pid > 0


# ---------------------------------------------------------------- the folder


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    for path in (tmp_path, tmp_path / "thesis.tex"):
        with pytest.raises(ConfigError, match="left alone; name another with --out"), folder.made_anew(path):
            pytest.fail("it must be refused")
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be used as the demo's folder"), folder.made_anew(tmp_path / "file/a"):
        pytest.fail("it must be refused")


def test_a_former_demo_is_deleted_and_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    former = tmp_path / "demo"
    with folder.made_anew(former) as made:
        (made / "kafka").mkdir()
        (made / "kafka" / "log").touch()
        (made / "link").symlink_to(outside)
    with folder.made_anew(former) as made:
        assert [entry.name for entry in made.iterdir()] == [folder.MARKER]
    assert (outside / "kept").exists()


def test_two_demos_never_share_a_folder(tmp_path: Path) -> None:
    with folder.made_anew(tmp_path), (tmp_path / folder.MARKER).open() as marker:
        with pytest.raises(BlockingIOError):
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(ConfigError, match="another demo runs"), folder.made_anew(tmp_path):
            pytest.fail("it must be refused")


def test_what_is_not_installed_is_named_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "home", lambda _version: tmp_path)
    with pytest.raises(KafkaError, match=r"not installed; run: .* -m shoal\.agents\.broker\.jars"):
        run_demo(ShopScene.open, tmp_path / "demo", PlainView())
    assert not (tmp_path / "demo").exists()
    with pytest.raises(InputError, match="make install"):
        Purchases.read(tmp_path / "purchases.csv.gz")


# ---------------------------------------------------------------- what a terminal shows


def test_the_board_shows_progress_estimate_and_truth(shop: ShopScene, progress: DemoProgress) -> None:
    console = Console(file=io.StringIO(), width=130, record=True)
    console.print(shop.board(progress))
    text = console.export_text()
    assert "69,659 of 69,659" in text
    assert "released up to 1998-07-01" in text
    rows = {words[0]: words[1] for line in text.splitlines() if len(words := line.split()) > 1}
    assert [rows[metric.name] for metric in progress.config.metrics] == ["35.89"] * 2
    assert "basket-full: activated level 2 since 1997-02-01, 3 since" in text


def test_the_board_is_there_before_the_first_release(shop: ShopScene, progress: DemoProgress) -> None:
    console = Console(file=io.StringIO(), width=130, record=True)
    nothing = DemoProgress(progress.config, shop.count, progress.due)
    console.print(shop.board(nothing))
    assert console.export_text().count("waiting") == 2
    assert shop.line(nothing) == ""
    assert not nothing.complete


def test_a_terminal_gets_a_moving_table_and_is_left_in_order(shop: ShopScene, progress: DemoProgress) -> None:
    written = io.StringIO()
    view = TerminalView(Console(file=written, force_terminal=True, width=130))
    view.show(shop, progress)
    view.show(shop, progress)
    view.say("done")
    view.rest()
    assert "\x1b[?25l" in written.getvalue()
    assert written.getvalue().rindex("\x1b[?25h") > written.getvalue().rindex("\x1b[?25l")  # the cursor is back
    assert written.getvalue().endswith("done\x1b[0m\n")


@pytest.mark.parametrize(
    ("numbers", "drawn"),
    [
        ((50, 20, 60, 40), "··━━┃●━····"),
        ((50, 50, 50, 50), "·····┃·····"),
        ((-900, -920, -880, 40), "◄···┃······"),
        ((900, -20, 300, 400), "◄━━━━━━━━━►"),
    ],
)
def test_a_gauge_says_what_is_off_its_scale(numbers: tuple[float, float, float, float], drawn: str) -> None:
    value, low, high, truth = numbers
    assert gauge(value, low, high, truth, (0, 100), width=11).plain == drawn
