"""The key file: made once, read only while private, bound to one log."""

import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from shoal.agents.audit import key_file
from shoal.agents.audit.key_file import NoiseUse
from shoal.models.errors import KeyFileError
from shoal.models.version import NoiseName

LOG, OTHER = "a" * 32, "b" * 32


@pytest.fixture
def path(tmp_path: Path) -> Path:
    key_file.new(tmp_path / "shoal.key")
    return tmp_path / "shoal.key"


def test_a_new_key_is_random_private_and_readable_again(tmp_path: Path) -> None:
    one, two = (key_file.new(tmp_path / name) for name in ("one.key", "two.key"))
    assert one.secret != two.secret
    assert one.fingerprint != two.fingerprint
    assert key_file.read(tmp_path / "one.key") == one
    assert stat.S_IMODE((tmp_path / "one.key").stat().st_mode) == 0o600
    assert (tmp_path / "one.key").read_text() == one.secret.hex() + "\n"


def test_the_key_is_not_in_what_is_shown_of_it(path: Path) -> None:
    key = key_file.read(path)
    assert key.secret.hex() not in repr(key)
    assert repr(key.secret) not in repr(key)
    assert len(key.fingerprint) == 16
    assert key.fingerprint not in key.secret.hex()


def test_a_key_is_never_overwritten(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(KeyFileError, match="exists and is not overwritten"):
        key_file.new(path)
    assert path.read_bytes() == before


def test_a_place_where_no_key_can_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="cannot be made"):
        key_file.new(tmp_path / "nowhere" / "shoal.key")


def test_a_missing_key_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="shoal key new .*shoal.key"):
        key_file.read(tmp_path / "shoal.key")


def test_an_unreadable_key_is_refused(path: Path) -> None:
    with pytest.raises(KeyFileError, match="cannot be read"):
        key_file.read(path / "below-a-file")


def test_a_folder_is_no_key(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="is not a file"):
        key_file.read(tmp_path)


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o602, 0o644, 0o660, 0o777])
def test_a_key_open_to_others_is_refused(path: Path, mode: int) -> None:
    path.chmod(mode)
    with pytest.raises(KeyFileError, match=f"is open to others .mode 0{mode:o}.; run: chmod 600"):
        key_file.read(path)


@pytest.mark.parametrize(
    "content", ["", "deadbeef", "zz" * 32, "00" * 31, "00" * 33, "00" * 32 + "\n\n", "é" * 32, "0" * 500]
)
def test_what_is_no_key_is_refused_and_not_repeated(path: Path, content: str) -> None:
    path.write_text(content)
    with pytest.raises(KeyFileError, match="does not hold a key") as caught:
        key_file.read(path)
    assert not content or content.strip() not in str(caught.value)


def named(metric: str, version: int = 1) -> NoiseName:
    return NoiseName(metric, version, "d1")


def use(
    path: Path, log_id: str, *names: NoiseName, app: str = "shoal", owner: str = "workers", basket: int | None = None
) -> None:
    """Register versions, in a log that knows the metric "basket" with a number of releases, or not at all."""
    known = {} if basket is None else {named("basket"): NoiseUse(app, owner, basket)}
    key_file.announce(path, log_id, app, owner, names, lambda: known)
    known = {name: known.get(name, NoiseUse(app, owner, 0)) for name in names}
    key_file.bind(path, log_id, names, lambda: known)


def used(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(path.with_name("shoal.key.used").read_bytes())
    return found


def test_a_key_belongs_to_one_log(path: Path) -> None:
    # given a key that two metric versions use, at every start again
    for releases in (None, 0):
        use(path, LOG, named("basket"), basket=releases)
    use(path, LOG, named("visits", 2), owner="file")
    noted = {"app": "shoal", "state": "used", "releases": 0}
    before = {
        "format": 1,
        "log": LOG,
        "noise": {
            named("basket").hex: noted | {"metric": "basket", "version": 1, "digest": "d1", "owner": "workers"},
            named("visits", 2).hex: noted | {"metric": "visits", "version": 2, "digest": "d1", "owner": "file"},
        },
    }
    assert used(path) == before
    assert stat.S_IMODE(path.with_name("shoal.key.used").stat().st_mode) == 0o600
    # when it turns up beside another log, it is refused, for a new metric too
    for name in (named("basket"), named("new")):
        with pytest.raises(KeyFileError, match="belongs to another audit log"):
            use(path, OTHER, name)
    # and nothing was changed by that
    assert used(path) == before
    assert sorted(file.name for file in path.parent.iterdir()) == ["shoal.key", "shoal.key.used"]


def test_noise_that_met_more_than_the_log_knows_is_refused(path: Path) -> None:
    # given noise of a file run with three releases
    use(path, LOG, named("basket"), owner="file")
    key_file.remember(path, LOG, {named("basket"): 3})
    key_file.remember(path, LOG, {named("basket"): 2})  # of a run that repeats the first ones
    unknown = 'noise of metric "basket" version 1 was used by app "shoal", and this log does not know it: restore the '
    fewer = 'was used by app "shoal" for 3 releases, and this log has 2 of them: restore the newer log, or raise'
    # then a log that lacks the version, or one of its releases, is refused; and so is one that has it elsewhere
    for terms, message in (
        ({}, unknown), ({"app": "other"}, unknown), ({"app": "other", "basket": 3}, unknown),
        ({"owner": "workers", "basket": 3}, unknown), ({"owner": "file", "basket": 2}, fewer),
    ):  # fmt: skip
        with pytest.raises(KeyFileError, match=message):
            use(path, LOG, named("basket"), **terms)
    use(path, LOG, named("basket"), owner="file", basket=3)
    use(path, LOG, NoiseName("basket", 1, "d2"), owner="file")  # other parameters have other noise


def test_an_announcement_locks_nobody_out(path: Path) -> None:
    """A registration that was cut off has published nothing, whoever comes next."""
    key_file.announce(path, LOG, "shoal", "file", [named("basket")], dict)
    use(path, LOG, named("basket"), app="other")
    assert used(path)["noise"][named("basket").hex]["app"] == "other"


def test_the_owner_is_that_of_the_log_whoever_announced_last(path: Path) -> None:
    """Two first starts at once: both announce, and one is registered."""
    for owner in ("workers", "file"):
        key_file.announce(path, LOG, "shoal", owner, [named("basket")], dict)
    registered = {named("basket"): NoiseUse("shoal", "workers", 0)}
    key_file.bind(path, LOG, [named("basket")], lambda: registered)
    key_file.compare(path, LOG, "shoal", [named("basket")], lambda: registered)


def test_a_memory_that_is_made_anew_has_what_the_log_has(path: Path) -> None:
    use(path, LOG, named("basket"), owner="file", basket=3)
    with pytest.raises(KeyFileError, match="for 3 releases, and this log has 2 of them"):
        use(path, LOG, named("basket"), owner="file", basket=2)
    path.with_name("shoal.key.used").unlink()
    with pytest.raises(KeyFileError, match="was replaced while this run went on: it lacks metric .* run the command"):
        key_file.remember(path, LOG, {named("basket"): 4})


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{", '{"basket/1": "log"}', '{"format": 0, "log": "a", "noise": {}}',
        '{"format": 1, "log": "a", "noise": {"f00d": {"app": "shoal"}}}',
    ],
)  # fmt: skip
def test_a_damaged_memory_is_refused(path: Path, content: str) -> None:
    path.with_name("shoal.key.used").write_text(content)
    with pytest.raises(KeyFileError, match="used is damaged"):
        use(path, LOG, named("basket"))


def test_a_memory_of_a_later_version_is_refused(path: Path) -> None:
    path.with_name("shoal.key.used").write_text('{"format": 2}')
    with pytest.raises(KeyFileError, match="was written by a later version of shoal; upgrade shoal"):
        use(path, LOG, named("basket"))


def test_a_memory_that_cannot_be_read_is_refused(path: Path) -> None:
    path.with_name("shoal.key.used").mkdir()
    with pytest.raises(KeyFileError, match="used cannot be read"):
        use(path, LOG, named("basket"))


def test_a_memory_that_cannot_be_written_is_refused(path: Path) -> None:
    path.with_name("shoal.key.used.part").mkdir()
    with pytest.raises(KeyFileError, match="used cannot be written"):
        use(path, LOG, named("basket"))


BIND = """
import sys
from pathlib import Path
from shoal.agents.audit import key_file
from shoal.agents.audit.key_file import NoiseUse
from shoal.models.errors import KeyFileError
from shoal.models.version import NoiseName
try:
    for number in range(1, 20):
        name = NoiseName(sys.argv[3], number, "d1")
        key_file.announce(Path(sys.argv[1]), sys.argv[2], "shoal", "workers", [name], dict)
        key_file.bind(Path(sys.argv[1]), sys.argv[2], [name], lambda: {name: NoiseUse("shoal", "workers", 0)})
    print("bound")
except KeyFileError:
    print("refused")
"""


def bind_at_once(path: Path, *arguments: tuple[str, str]) -> list[str]:
    started = [
        subprocess.Popen([sys.executable, "-c", BIND, path, *both], stdout=subprocess.PIPE, text=True)
        for both in arguments
    ]
    return sorted(process.communicate(timeout=60)[0].strip() for process in started)


def test_processes_that_bind_at_once_forget_nothing(path: Path) -> None:
    assert bind_at_once(path, (LOG, "one"), (LOG, "two"), (LOG, "three")) == ["bound"] * 3
    assert len(used(path)["noise"]) == 3 * 19


def test_processes_with_two_logs_cannot_both_win(path: Path) -> None:
    assert bind_at_once(path, (LOG, "one"), (OTHER, "one")) == ["bound", "refused"]
