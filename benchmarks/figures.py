"""What the benchmarks print and keep: Markdown tables, the machine they ran on, JSON results."""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
PACKAGES = ("aiokafka", "faust-streaming", "orjson", "numpy", "SQLAlchemy")


def machine() -> str:
    """Processor, cores and memory."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if sys.platform == "linux" else []
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine()
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}"


def versions() -> str:
    """Python and the packages that decide speed."""
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in PACKAGES)])


def run(module: str, *arguments: str, **options: Any) -> dict[str, Any]:
    """Run a module of the benchmarks as a process of its own; the JSON object that it prints last."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=False, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]  # Faust prints of its own
    result: dict[str, Any] = json.loads(lines[-1])
    return result


def middle(runs: Sequence[Mapping[str, Any]], name: str) -> float:
    """The median over runs."""
    return median(float(one[name]) for one in runs)


def spread(runs: Sequence[float], scale: float = 1.0, digits: int = 0) -> str:
    """Median, least and greatest, as text."""
    least, most, centre = (value / scale for value in (min(runs), max(runs), median(runs)))
    return f"{centre:,.{digits}f} ({least:,.{digits}f}–{most:,.{digits}f})"


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def within(page: str, command: str, made: str) -> str:
    r"""A page with what a command made between the marks of its block.

    >>> within("a\n<!-- figures: make x -->\nold\n<!-- end of figures -->\nb\n", "make x", "new\n")
    'a\n<!-- figures: make x -->\nnew\n<!-- end of figures -->\nb\n'
    """
    begin, end = f"<!-- figures: {command} -->\n", "<!-- end of figures -->\n"
    before, _, rest = page.partition(begin)
    return before + begin + made + end + rest.partition(end)[2]


def publish(name: str, title: str, text: str, data: Mapping[str, Any], folder: Path | None) -> None:
    """Print what was measured; in a folder, keep it as JSON too."""
    print(f"\n## {title}\n\n{text}\n\n{machine()}; {versions()}", flush=True)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        ran = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine(), "versions": versions()}
        (folder / f"{name}.json").write_text(json.dumps(ran | dict(data), indent=1) + "\n")


def is_quick(about: str | None, how: str) -> bool:
    """Whether the command line has --quick, its only option."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--quick", action="store_true", help=f"{how}; nothing is kept")
    return bool(parser.parse_args().quick)


def place(*, quick: bool) -> Path | None:
    """The folder that keeps a full run; none for a quick one."""
    return None if quick else RESULTS
