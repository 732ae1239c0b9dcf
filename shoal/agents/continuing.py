"""Continuing a file run: what a version has published may be made again and continued, never replaced.

In come the outputs of a file run; out come those that are in the audit log and may be shown. The same noise over a
second input shows the difference of the two, and a second input in other groups gives its users groups that the first
one has used up. So nothing new is published before the input has made all again that the log has of its metrics; and
where workers read the topic, nothing new at all: the stream is theirs. What can fail: the input is another one.
"""

from collections.abc import Iterator

from shoal.agents.audit_log import Group, group_of, read_records
from shoal.agents.ledger import Ledger
from shoal.models.errors import LedgerError
from shoal.stream.plan import TopicPlan
from shoal.stream.runner import Output


class Continuation:
    """Holds one file run to what its metric versions have published already."""

    def __init__(self, ledger: Ledger, app: str, plan: TopicPlan) -> None:
        versions = {(metric.section.name, metric.section.version) for metric in plan.metrics}
        self.repeats_only = plan.topic in ledger.partitions(app)
        self._ledger, self._app, self._topic = ledger, app, plan.topic
        self._published = {group: head.seq for group, head in ledger.heads(app).items() if group[:2] in versions}
        self._missing = dict(self._published)  # not yet made again
        self._waiting: list[Output] = []
        self._holding = False  # something in `_waiting` is new
        if self.repeats_only and not self._published:
            raise self._not_ours()

    def _not_ours(self) -> LedgerError:
        return LedgerError(
            f"topic {self._topic!r} of app {self._app!r} is read by workers, and this input makes releases that are "
            "not in the audit log; one key for two streams would show their difference: use an app, an audit log and a "
            "key of its own"
        )

    def take(self, output: Output) -> list[Output]:
        """Write what may be written; the outputs, this one or earlier ones, that may now be shown.

        Raises:
            LedgerError: workers read the topic, and the output has what is not in the log.
            AuditError: the output has other bytes than the log.
        """
        self._waiting.append(output)
        if self._look(output):
            self._holding = True
        if self._holding and self.repeats_only:
            raise self._not_ours()
        if self._holding and self._missing:
            return []
        self._holding = False
        return self._write()

    def finish(self) -> None:
        """The input has ended.

        Raises:
            LedgerError: it is not the one that was published from, continued.
        """
        for group, seq in sorted(self._missing.items()):
            raise LedgerError(
                f"{group}: release {seq} is in the audit log and this input does not make it; a version's input may be "
                "repeated and continued, not replaced: raise its version"
            )

    def _look(self, output: Output) -> bool:
        """Note what was made again; whether anything is new."""
        if not self._published:
            return bool(output.made)
        new = False
        for group, seq, _ in _places(output):
            new = new or seq > self._published.get(group, 0)
            if seq == self._missing.get(group):
                del self._missing[group]
        return new

    def _write(self) -> list[Output]:
        """What is repeated first: if it differs, nothing new is written."""
        done, self._waiting = self._waiting, []
        activations = [row for output in done for row in output.activations]
        new = [row for output in done for row in output.made]
        if self._published:
            places = [(seq > self._published.get(group, 0), row) for one in done for group, seq, row in _places(one)]
            new = [row for is_new, row in places if is_new]
            self._ledger.append(self._app, [row for is_new, row in places if not is_new], activations=activations)
            activations = []
        if new or activations:
            self._ledger.append(self._app, new, activations=activations)
        return done


def _places(output: Output) -> Iterator[tuple[Group, int, bytes]]:
    for row, fields in read_records(output.made, "seq"):
        yield group_of(fields), fields["seq"], row
