"""A rehearsal: Kafka starts and stops once, and Java remembers what it loaded. Later starts take two thirds as long.

    python -m shoal.agents.broker.rehearsal    instant when it is done already

Nothing depends on it: a broker starts without it, and Java passes over what fits other jars or another Java.
"""

import sys
import tempfile
from pathlib import Path
from typing import ClassVar

from shoal.agents.broker import jars
from shoal.agents.broker.process import SERVER_CLASS, Broker
from shoal.models.errors import KafkaError


class Rehearsal(Broker):
    """A broker that writes down, as it stops, what it loaded."""

    stop_limit: ClassVar[float] = 120.0  # seconds; writing takes some

    def __init__(self, written: Path) -> None:
        super().__init__()
        self._written = written

    def _java(self, main: str, *options: str) -> list[str]:
        java, *rest = super()._java(main, *options)
        return [java, f"-XX:AOTCacheOutput={self._written}", *rest] if main == SERVER_CLASS else [java, *rest]

    def _memory(self) -> list[str]:
        return []


def rehearse() -> bool:
    """Rehearse a start, unless that was done; False if so.

    Raises:
        KafkaError: Kafka did not start, or this Java, older than 25, cannot remember anything.
    """
    cache = jars.remembered()
    if cache.is_file():
        return False
    with tempfile.TemporaryDirectory(dir=cache.parent) as scratch:
        written = Path(scratch) / cache.name
        with Rehearsal(written):
            pass
        if not written.is_file():
            raise KafkaError("this Java remembers nothing of a start")
        written.replace(cache)
    return True


def main() -> int:
    """Rehearse; a failure is told, and does no harm."""
    try:
        state = "rehearsed" if rehearse() else "was rehearsed already"
    except KafkaError as error:
        state = f"was not rehearsed, and will take longer: {error}"
    print(f"The start of Apache Kafka {jars.VERSION} {state}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
