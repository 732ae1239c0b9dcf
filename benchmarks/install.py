"""What an installation takes on the disk, and what commands take before they do anything; prints JSON.

python -m benchmarks.install [--extras]

The wheel is built and installed into clean environments, in the locked versions: megabytes of site-packages with the
compiled modules and without pip. Each command runs in that of the core, on the events of examples/visits.toml; seconds
are those of the processor, the least of five. With --extras, also what each extra adds (some minutes).
"""

import argparse
import json
import resource
import shutil
import tempfile
from pathlib import Path

from distribution import ROOT
from distribution.environment import Environment, build_wheel
from shoal.models.extras import MODULES

TIMES = 5
LARGEST = 8  # packages that are named
CONFIG = "visits.toml"
COMMANDS = {
    "--help": ("--help",),
    "key new": ("key", "new", "another.key"),
    "check": ("check", CONFIG),
    "plan": ("plan", CONFIG, "--users", "300"),
    "run": ("run", CONFIG, "--input", "visits.jsonl", "--output", "-"),
    "budget": ("budget", CONFIG),
    "audit verify": ("audit", "verify", CONFIG),
}
COUNT = """
import sys
from shoal.agents.cli.main import app
app(sys.argv[1:], standalone_mode=False)
print(len(sys.modules))
"""


def seconds(environment: Environment, folder: Path, *arguments: str) -> float:
    """Processor time of a command, the least of some."""
    least = float("inf")
    for _ in range(TIMES):
        (folder / "another.key").unlink(missing_ok=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment.run(str(environment.shoal), *arguments, cwd=folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        least = min(least, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return round(least, 2)


def measure(scratch: Path, *, extras: bool) -> dict[str, object]:
    """Build, install, run."""
    wheel = build_wheel(scratch / "wheel")
    core = Environment.with_wheel(scratch / "core", wheel)
    folder = scratch / "visits"
    folder.mkdir()
    for name in (CONFIG, "visits.jsonl"):
        shutil.copy(ROOT / "examples" / name, folder)
    core.run(str(core.shoal), "key", "new", "visits.key", cwd=folder)
    commands = {
        name: {
            "seconds": seconds(core, folder, *arguments),
            "modules": int(core.run(str(core.python), "-c", COUNT, *arguments[:2], "--help", cwd=folder).split()[-1]),
        }
        for name, arguments in COMMANDS.items()
    }
    size = core.megabytes()
    found: dict[str, object] = {
        "wheel_megabytes": round(wheel.stat().st_size / 1e6, 2),
        "core": {
            "megabytes": round(size),
            "packages": len(core.packages),
            "largest": {name: round(each, 1) for name, each in list(core.by_package().items())[:LARGEST]},
        },
        "commands": commands,
    }
    if extras:
        found["extras_add_megabytes"] = {
            extra: round(Environment.with_wheel(scratch / extra, wheel, extra).megabytes() - size)
            for extra in (*MODULES, "all")
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.install", description=__doc__)
    parser.add_argument("--extras", action="store_true", help="what each extra adds, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(Path(folder), extras=options.extras), indent=2))


if __name__ == "__main__":
    main()
