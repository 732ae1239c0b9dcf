"""Continuing a file run: published releases of a version may be recomputed and continued, never replaced.

Takes the outputs of a file run, and returns those that are in the audit log and may be shown. The same noise over a
second input would show the difference of the two inputs, and a second input in other groups would let users into more
groups than their cap. So nothing new is published until the input has reproduced all that the log has of its metrics;
and where workers read the topic, nothing new at all. The log is read after the run was registered, which made it the
owner: from then on either nobody else adds to it, or this run may not. Fails if the input is another one, or if another
run or a worker has taken the version over.

`shoal/stream/guard.py` does the same for workers; `owners.py` says who owns a version.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from shoal.agents.audit.ledger import Ledger
from shoal.agents.audit.log import Group, group_of, read_records
from shoal.agents.audit.owners import Version
from shoal.models.errors import LedgerError
from shoal.models.records import activation_name
from shoal.stream.file_run import Output
from shoal.stream.topic import TopicPlan

Remember = Callable[[Mapping[Version, int]], None]  # called before releases are shown, with how many the log has
TOGETHER = 5_000  # rows; a transaction takes as long as hundreds of them


class Continuation:
    """Holds one file run to what its metric versions have published already."""

    def __init__(
        self,
        ledger: Ledger,
        app: str,
        plan: TopicPlan,
        remember: Remember = lambda counts: None,
        *,
        together: int = TOGETHER,
    ) -> None:
        """`together`: rows that are written in one transaction; until there are so many, outputs wait."""
        self._together = together
        self._versions = {(metric.section.name, metric.section.version) for metric in plan.metrics}
        self._ledger, self._app, self._topic, self._remember = ledger, app, plan.topic, remember
        self._counts = Counter[Version]()  # releases in the log
        self._began = False
        self._published: dict[Group, int] = {}
        self._missing: dict[Group, int] = {}  # not yet made again
        self._activated: set[tuple[Group, int]] = set()
        self._unmade: set[tuple[Group, int]] = set()  # activations not yet made again
        self._by_workers = False
        self._waiting: list[Output] = []
        self._rows = 0  # in them: releases, activations and dead letters; an output without any counts as one
        self._holding = False  # something in `_waiting` is new
        is_published = any(group[:2] in self._versions for group in ledger.standing(app).heads)
        if plan.topic in ledger.partitions(app) and not is_published:  # nothing is charged for this
            raise self._not_ours()

    def _begin(self) -> None:
        """Read what is published, once this run is registered."""
        if self._began:
            return
        standing = self._ledger.standing(self._app)
        self._began = True
        self._by_workers = any(
            standing.owners[version].by_workers for version in self._versions & standing.owners.keys()
        )
        self._published = {group: head.seq for group, head in standing.heads.items() if group[:2] in self._versions}
        self._missing = dict(self._published)
        for group, seq in self._published.items():
            self._counts[group.metric, group.version] += seq
        self._activated = {version for version in standing.activated if version[0][:2] in self._versions}
        # Those of workers may be in the log before their releases are, and nothing new follows them here.
        self._unmade = set() if self._by_workers else set(self._activated)
        if self._by_workers and not self._published:
            raise self._not_ours()

    @property
    def repeats_only(self) -> bool:
        """Whether workers own the stream; to be asked once the run is registered."""
        self._begin()
        return self._by_workers

    def _not_ours(self) -> LedgerError:
        return LedgerError(
            f"topic {self._topic!r} of app {self._app!r} is read by workers, and this input makes releases that are "
            "not in the audit log; one key for two streams would show their difference: use an app, an audit log and a "
            "key of its own"
        )

    def logged(self, outputs: Iterable[Output]) -> Iterator[Output]:
        """All outputs, each once the log has it; raises what `take` and `finish` raise."""
        for output in outputs:
            yield from self.take(output)
        yield from self.finish()

    def take(self, output: Output) -> list[Output]:
        """Write what may be written; the outputs, this one or earlier ones, that may now be shown.

        Raises:
            LedgerError: workers read the topic, and the output has what is not in the log.
            AuditError: the output has other bytes than the log, or is new and another owns the version by now.
        """
        self._begin()
        self._waiting.append(output)
        self._rows += max(1, len(output.made) + len(output.activations) + len(output.dead_letters))
        if self._look(output):
            self._holding = True
        if self._holding and self._by_workers:
            raise self._not_ours()
        if self._holding and (self._missing or self._unmade):
            return []
        return self._write() if self._rows >= self._together else []

    def finish(self) -> list[Output]:
        """The input has ended: write what still waits; the outputs that may now be shown.

        Raises:
            LedgerError: it is not the one that was published from, continued.
            AuditError: as `take` does.
        """
        self._begin()
        for group, seq in sorted(self._missing.items()):
            raise LedgerError(
                f"{group}: release {seq} is in the audit log and this input does not make it; a version's input may be "
                "repeated and continued, not replaced: raise its version"
            )
        for group, level in sorted(self._unmade):
            raise LedgerError(
                f"{group}: the {activation_name(level)} is in the audit log and this input does not make it; a "
                "version's input may be repeated and continued, not replaced: raise its version"
            )
        return self._write()

    def _look(self, output: Output) -> bool:
        """Note what was made again, and return whether anything is new."""
        for row in output.activations:
            self._unmade -= _activated_by(row)
        new = any(not self._is_logged(row) for row in output.activations)
        if not self._published:
            return new or bool(output.made)
        for group, seq, _ in _releases(output):
            new = new or seq > self._published.get(group, 0)
            if seq == self._missing.get(group):
                del self._missing[group]
        return new

    def _is_logged(self, activation: bytes) -> bool:
        """Whether the log has this activation, of whatever value: it came with a release that is there, too."""
        return _activated_by(activation) <= self._activated

    def _write(self) -> list[Output]:
        """Write repeats first: if one differs, nothing new is written."""
        done, self._waiting, self._rows, self._holding = self._waiting, [], 0, False
        rows = []
        for group, seq, row in (release for output in done for release in _releases(output)):
            rows.append((seq > self._published.get(group, 0), row))
            self._counts[group.metric, group.version] += rows[-1][0]
        activations = [(not self._is_logged(row), row) for output in done for row in output.activations]
        for new in (False, True):
            some = [row for is_new, row in rows if is_new == new]
            with_them = [row for is_new, row in activations if is_new == new]
            if some or with_them:
                self._ledger.append(self._app, some, activations=with_them, run=self._ledger.run)
        self._remember(self._counts)
        return done


def _activated_by(row: bytes) -> set[tuple[Group, int]]:
    return {(group_of(fields), fields["level"]) for _, fields in read_records([row], "level")}


def _releases(output: Output) -> Iterator[tuple[Group, int, bytes]]:
    for row, fields in read_records(output.made, "seq"):
        yield group_of(fields), fields["seq"], row
