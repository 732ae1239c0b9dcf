"""Continuing a file run: published releases of a version may be recomputed and continued, never replaced.

Takes the outputs of a file run, and returns those that are in the audit log and may be shown. The same noise over a
second input would show the difference of the two inputs, and a second input in other groups would let users into more
groups than their cap. So nothing new is published until the input has reproduced all that the log has of its metrics.
The log is read after the run was registered, which made it the owner: from then on either nobody else adds to it, or
this run may not. Fails if the input is another one, or if another run has taken the version over.

`shoal/stream/guard.py` does the same for workers; `owners.py` says who owns a version.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from shoal.agents.audit.app_ledger import AppLedger
from shoal.agents.audit.log import Group, group_of, read_records
from shoal.models.errors import LedgerError
from shoal.models.records import activation_name
from shoal.models.releases.record import Activation, Release
from shoal.models.version import VersionId
from shoal.stream.file_run import Output
from shoal.stream.topic import TopicPlan

Remember = Callable[[Mapping[VersionId, int]], None]  # called before releases are shown, with how many the log has
TOGETHER = 5_000  # rows; a transaction takes as long as hundreds of them


class Continuation:
    """Holds one file run to what its metric versions have published already."""

    def __init__(
        self,
        ledger: AppLedger,
        plan: TopicPlan,
        remember: Remember = lambda counts: None,
        *,
        together: int = TOGETHER,
    ) -> None:
        """`together`: rows that are written in one transaction; until there are so many, outputs wait."""
        self._together = together
        self._versions = {VersionId(ledger.app, metric.parts.name, metric.parts.version) for metric in plan.metrics}
        self._ledger, self._remember = ledger, remember
        self._counts = Counter[VersionId]()  # releases in the log
        self._began = False
        self._published: dict[Group, int] = {}
        self._missing: dict[Group, int] = {}  # not yet made again
        self._activated: set[tuple[Group, int]] = set()
        self._unmade: set[tuple[Group, int]] = set()  # activations not yet made again
        self._waiting: list[Output] = []
        self._rows = 0  # in them: releases, activations and dead letters; an output without any counts as one
        self._holding = False  # something in `_waiting` is new

    def _begin(self) -> None:
        """Read what is published, once this run is registered."""
        if self._began:
            return
        standing = self._ledger.standing()
        self._began = True
        self._published = {group: head.seq for group, head in standing.heads.items() if group.version in self._versions}
        self._missing = dict(self._published)
        for group, seq in self._published.items():
            self._counts[group.version] += seq
        self._activated = {each for each in standing.activated if each[0].version in self._versions}
        self._unmade = set(self._activated)

    def logged(self, outputs: Iterable[Output]) -> Iterator[Output]:
        """All outputs, each once the log has it; raises what `take` and `finish` raise."""
        for output in outputs:
            yield from self.take(output)
        yield from self.finish()

    def take(self, output: Output) -> list[Output]:
        """Write what may be written; the outputs, this one or earlier ones, that may now be shown.

        Raises:
            AuditError: the output has other bytes than the log, or is new and another run owns the version by now.
        """
        self._begin()
        self._waiting.append(output)
        self._rows += max(1, len(output.made) + len(output.activations) + len(output.dead_letters))
        if self._look(output):
            self._holding = True
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
            self._unmade -= self._activated_by(row)
        new = any(not self._is_logged(row) for row in output.activations)
        if not self._published:
            return new or bool(output.made)
        for group, seq, _ in self._releases(output):
            new = new or seq > self._published.get(group, 0)
            if seq == self._missing.get(group):
                del self._missing[group]
        return new

    def _is_logged(self, activation: bytes) -> bool:
        """Whether the log has this activation, of whatever value: it came with a release that is there, too."""
        return self._activated_by(activation) <= self._activated

    def _write(self) -> list[Output]:
        """Write repeats first: if one differs, nothing new is written."""
        done, self._waiting, self._rows, self._holding = self._waiting, [], 0, False
        rows = []
        for group, seq, row in (release for output in done for release in self._releases(output)):
            rows.append((seq > self._published.get(group, 0), row))
            self._counts[group.version] += rows[-1][0]
        activations = [(not self._is_logged(row), row) for output in done for row in output.activations]
        for new in (False, True):
            some = [row for is_new, row in rows if is_new == new]
            with_them = [row for is_new, row in activations if is_new == new]
            if some or with_them:
                self._ledger.append(some, activations=with_them, run=self._ledger.run)
        self._remember(self._counts)
        return done

    def _activated_by(self, row: bytes) -> set[tuple[Group, int]]:
        return {(group_of(self._ledger.app, begun), begun.number) for _, begun in read_records([row], Activation)}

    def _releases(self, output: Output) -> Iterator[tuple[Group, int, bytes]]:
        for row, release in read_records(output.made, Release):
            yield group_of(self._ledger.app, release), release.seq, row
