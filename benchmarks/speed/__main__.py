"""shoal beside a raw loop, Kafka Streams, Quix Streams, Bytewax and stock Faust: one broker, one topic, one run.

    python -m benchmarks.speed [--quick] [--only NAME ...] [--rounds N] [--events N]

Everybody does the work of bound: a count and a sum for each user, of the first 64 samples, with the durability that
the system has. shoal runs in both lanes, its bound alone, which also sends contributions, and whole, with releases and
their SQL log; others send nothing on. The clock of a run begins with the first event and ends when everything is
committed. A round runs everybody once, and the raw loop at both ends.

Other systems are installed into `.bench` the first time, from lock files; one that cannot be installed is said to be
missing. A run of whole parts keeps its figures, in benchmarks/results/speed.json, and writes the tables and the picture
of the documents; one with --quick or of some subjects only prints.
"""

import argparse
import asyncio
import dataclasses
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import figures
from benchmarks.speed import page, subjects, throughput
from benchmarks.workload import Workload
from shoal.agents.broker.process import Broker

PARTS = ("throughput",)
NAMES = (*PARTS, subjects.KERNEL_LANE, subjects.TWIN_LANE, subjects.PEER, *(peer.key for peer in subjects.PEERS))


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of fewer events; nothing is kept")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help=f"parts or subjects: {', '.join(NAMES)}")
    parser.add_argument("--rounds", type=int, help="of the throughput, 3 unless told")
    parser.add_argument("--events", type=int, help="in the topic of the throughput, 4,000,000 unless told")
    options = parser.parse_args()
    some = [name for name in options.only if name not in PARTS]
    parts = [name for name in PARTS if not options.only or name in options.only or (some and name == "throughput")]
    for name in parts:
        began = time.monotonic()
        with Broker() as broker, tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
            data = MEASURED[name](Path(folder), broker, options, some)
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


def _throughput(folder: Path, broker: Broker, options: argparse.Namespace, some: list[str]) -> dict[str, Any]:
    size = throughput.QUICK if options.quick else throughput.FULL
    given = {"topic": options.events, "rounds": options.rounds}
    size = dataclasses.replace(size, **{name: value for name, value in given.items() if value})
    workload = Workload(size.topic, size.users)
    asyncio.run(workload.produce(broker.bootstrap, subjects.TOPIC, subjects.PARTITIONS))
    assert broker.pid is not None
    return throughput.measure(folder, broker.bootstrap, broker.pid, size, some)


MEASURED = {"throughput": _throughput}

if __name__ == "__main__":
    main()
