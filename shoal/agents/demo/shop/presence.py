"""The same purchases by relation add-remove, beside the stream: a second configuration, key and audit log.

It has an audit log of its own, since no log takes both relations of one topic: the demo's other metrics publish exactly
how many purchases there are. And it is a run over the file, since these purchases are long past: on Kafka time would go
by beats, which tell the time of a clock on the wall, not that of events.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from shoal.agents.audit import key_file
from shoal.agents.demo.processes import start, stop
from shoal.agents.demo.shop.outcome import MetricOutcome
from shoal.agents.demo.shop.purchases import FILE, Purchases
from shoal.agents.input.event_file import EventFile
from shoal.models.config.file import load
from shoal.models.errors import InputError
from shoal.models.releases.record import Release, record_of

CONFIG = """\
# What `shoal demo` ran beside its stream: the average purchase, by relation add-remove.

[audit]
url = "sqlite:///presence.db"    # one of its own: in no log may metrics of both relations read one topic

[privacy]
key_file = "presence.key"
epsilon = 1.0                    # about whether one customer was there at all, and all that they bought

[[metric]]
name = "presence"
topic = "purchases"
user = "customer"
value = "amount"
time = "at"
relation = "add-remove"          # that somebody bought anything is hidden, too
statistic = "mean"
range = [0, 200]                 # dollars
epsilon = 1.0                    # per person, for ever: of values and counts
max_contributions = 16           # per customer
every = "1d"
start = 1997-01-01
end = 1998-07-01
"""
NAME, TOPIC = "presence", "purchases"
RELEASES = "presence.jsonl"


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """Make its releases in the demo's folder, while the context lasts.

    Raises:
        InputError: it failed, with what it said.
    """
    key_file.new(folder / "presence.key")
    config = folder / "presence.toml"
    config.write_text(CONFIG, "utf-8")
    with NamedTemporaryFile(dir=folder, prefix="purchases-", suffix=".jsonl") as lines:
        _write_lines(config, lines.file)
        words = ("run", str(config), "--input", lines.name, "--output", str(folder / RELEASES))
        process = start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            yield
            _, said = process.communicate()
        finally:
            stop(process)
    if process.returncode:
        raise InputError(f"the run by relation add-remove failed: {said.decode('utf-8', 'replace').strip()}")


def _write_lines(config: Path, file: IO[bytes]) -> None:
    """Write the purchases, which are a table, as the JSON lines that a run of this relation takes."""
    for chunk in EventFile(str(FILE), load(config), TOPIC).chunks():
        file.writelines(event + b"\n" for _, event in chunk)
    file.flush()


def outcome(folder: Path, purchases: Purchases) -> MetricOutcome | None:
    """Its releases beside the truth; None where it was not run."""
    file = folder / RELEASES
    if not file.exists():
        return None
    records = map(record_of, file.read_bytes().splitlines())
    releases = [record for record in records if isinstance(record, Release)]
    (metric,) = load(folder / "presence.toml").metrics
    truths = [purchases.true_mean(release.time) for release in releases]
    return MetricOutcome(metric, releases, truths, [], purchases)
