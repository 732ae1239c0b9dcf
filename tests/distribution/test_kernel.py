"""The kernel is compiled and tested once for each state of its sources."""

import shutil
import subprocess
from pathlib import Path

import pytest

from distribution import kernel


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy of the kernel's sources, and an empty cache of the user's."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ignored = shutil.ignore_patterns("target")
    return Path(shutil.copytree(kernel.KERNEL, tmp_path / "kernel", ignore=ignored))


def test_the_digest_follows_every_source_and_nothing_that_cargo_builds(sources: Path) -> None:
    whole, built = kernel.digest((".",), sources), kernel.digest(kernel.BUILT, sources)
    # what cargo builds changes nothing
    (sources / "target").mkdir()
    (sources / "target" / "library.so").write_bytes(b"x")
    assert (kernel.digest((".",), sources), kernel.digest(kernel.BUILT, sources)) == (whole, built)
    # a seed of the fuzzer is tested again and not built again
    (sources / "fuzz" / "seeds" / "new").write_bytes(b"x")
    assert kernel.digest((".",), sources) != whole
    assert kernel.digest(kernel.BUILT, sources) == built
    # each source, moved or changed, is built again
    for path in [sources / "Cargo.lock", *sorted((sources / "src").rglob("*.rs"))[:2]]:
        path.write_bytes(path.read_bytes() + b"\n")
        assert kernel.digest(kernel.BUILT, sources) != built, path
        built = kernel.digest(kernel.BUILT, sources)
    path.rename(path.with_name("moved.rs"))
    assert kernel.digest(kernel.BUILT, sources) != built


def test_a_second_checkout_takes_the_wheel_of_the_first(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def compile_into(command: list[str], **options: object) -> None:
        commands.append(list(command))
        folder = Path(command[command.index("--wheel-dir") + 1])
        folder.mkdir()
        (folder / "shoal_kernel-0.1.0.whl").touch()

    digest = kernel.digest(kernel.BUILT, sources)
    monkeypatch.setattr(kernel, "digest", lambda names, folder: digest)
    monkeypatch.setattr(subprocess, "run", compile_into)
    first, second = kernel.build(sources), kernel.build(sources)
    assert first == second
    assert first.exists()
    assert len(commands) == 1
