"""shoal beside a raw loop, Kafka Streams, Quix Streams, Bytewax and stock Faust: one broker, one topic, one run.

    python -m benchmarks.speed [--quick] [--only NAME ...] [--rounds N] [--events N] [--users N]

Everybody does the work of bound: a count and a sum for each user, of the first 64 samples, with the durability that
the system has. shoal runs in both lanes, its bound alone, which also sends contributions, and whole, with releases and
their SQL log; others send nothing on. The clock of a run begins with the first event and ends when everything is
committed. A round runs everybody once, and the raw loop at both ends.

Other systems are installed into `.bench` the first time, from lock files; one that cannot be installed is said to be
missing. Further parts measure what grows with users, latency, several workers, file runs, replays and noise. A run of
whole parts keeps the figures of each, in benchmarks/results/speed.json, and writes the tables and the picture of the
documents; one with --quick or of some subjects only prints.
"""

import argparse
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

from benchmarks import figures
from benchmarks.speed import files, growth, latency, noise, page, replay, subjects, throughput, workers
from benchmarks.speed.context import Context
from shoal.agents.broker.process import Broker
from shoal.agents.process_settings import ending_in_order

PARTS: dict[str, ModuleType] = {
    "throughput": throughput,
    "growth": growth,
    "latency": latency,
    "workers": workers,
    "files": files,
    "replay": replay,
    "noise": noise,
}
SUBJECTS = (subjects.KERNEL_LANE, subjects.TWIN_LANE, subjects.PEER, *(peer.key for peer in subjects.PEERS))


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of fewer events; nothing is kept")
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", choices=[*PARTS, *SUBJECTS],
        help=f"parts: {', '.join(PARTS)}; or subjects: {', '.join(SUBJECTS)}",
    )  # fmt: skip
    parser.add_argument("--rounds", type=int, help="3 unless told")
    parser.add_argument("--events", type=int, help="of throughput, 4,000,000 unless told, and replays, 2,000,000")
    parser.add_argument("--users", type=int, help="at most, in growth; 10,000,000 unless told")
    options = parser.parse_args()
    some = tuple(name for name in options.only if name in SUBJECTS)
    named = [name for name in PARTS if name in options.only]
    for name in named or (["throughput"] if some else PARTS):
        began = time.monotonic()
        with ending_in_order(), Broker() as broker, tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
            given = (options.rounds, options.events, options.users)
            context = Context(Path(folder), broker, options.quick, *given, some)
            data = PARTS[name].measure(context)
        ran = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "minutes": (time.monotonic() - began) / 60,
            "command": "make bench" + (f' ARGS="{" ".join(sys.argv[1:])}"' if sys.argv[1:] else ""),
            "machine": figures.machine(),
            "versions": figures.versions(),
        }
        print(f"\n{page.tables({name: {'ran': ran, 'data': data}})}\n", flush=True)
        if not options.quick and not some:
            page.keep(name, data, ran)


if __name__ == "__main__":
    main()
