"""The kernel's parsers and writers on bytes that coverage leads to, under AddressSanitizer: `make fuzz`.

python -m tests.long.fuzz [--minutes N] [--target NAME] [--jobs N]

The targets are in kernel/fuzz; what they find stays in kernel/fuzz/corpus, and the next run goes on from there. They
need a nightly toolchain of Rust and cargo-fuzz; where these are missing it fails: what was not tried has not passed.
"""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from tests.long.rust import version_of

FOLDER = Path(__file__).parents[2] / "kernel" / "fuzz"
FUZZ = ("cargo", "+nightly", "fuzz")
INSTALL = "`rustup toolchain install nightly` and `cargo install cargo-fuzz` bring it"
LARGEST = 8192  # bytes of an input
SLOWEST = 20  # seconds that one may take
EXECUTED = re.compile(r"^stat::number_of_executed_units: (\d+)$", re.MULTILINE)
COVERED = re.compile(r"\bcov: (\d+) ft: (\d+)")
FOUND = re.compile(r"Test unit written to (\S+)")


def main(
    minutes: Annotated[float, typer.Option(help="How long each target is tried.")] = 5,
    target: Annotated[str | None, typer.Option(help="One of kernel/fuzz/targets; else all of them.")] = None,
    jobs: Annotated[int, typer.Option(help="How many targets at once.")] = os.cpu_count() or 1,
) -> None:
    """Build the targets, and try them until their time is over or an input breaks one."""
    targets = sorted(path.stem for path in (FOLDER / "targets").glob("*.rs"))
    if target is not None and target not in targets:
        sys.exit(f"no such target: {target}; there are {', '.join(targets)}")
    version_of(FUZZ, INSTALL)
    if cargo("build", "--features=fuzz").returncode:
        sys.exit("the targets cannot be built: see above")
    with ThreadPoolExecutor(jobs) as pool:
        failed = [name for name in pool.map(lambda name: tried(name, minutes), [target] if target else targets) if name]
    sys.exit(f"broken: {', '.join(failed)}" if failed else 0)


def cargo(command: str, *arguments: str, output: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run cargo-fuzz for our crate."""
    return subprocess.run(
        [*FUZZ, command, "--fuzz-dir=.", *arguments], cwd=FOLDER, stdout=output, stderr=subprocess.STDOUT, text=True,
        errors="replace",
    )  # fmt: skip


def tried(target: str, minutes: float) -> str:
    """Try one target, and say in a line what came of it; its name, if an input broke it."""
    corpus = FOLDER / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    done = cargo(
        "run", "--features=fuzz", target, str(corpus), f"seeds/{target}", "--", f"-max_total_time={60 * minutes:.0f}",
        f"-max_len={LARGEST}", f"-timeout={SLOWEST}", "-print_final_stats=1", output=subprocess.PIPE,
    )  # fmt: skip
    executed, covered = EXECUTED.search(done.stdout), COVERED.findall(done.stdout)
    count = int(executed[1]) if executed else 0
    edges, features = covered[-1] if covered else (0, 0)
    print(f"{target:9} {count:,} inputs, {edges} edges and {features} features covered", flush=True)
    if done.returncode == 0 and count:
        return ""
    found = FOUND.search(done.stdout)
    print(done.stdout[-8_000:])
    if found:
        print(f"{target}: {found[1]} breaks it; once it is mended, the input belongs into kernel/fuzz/seeds/{target}")
    return target


if __name__ == "__main__":
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(main)
    app()
