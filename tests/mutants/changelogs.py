"""Mutants of bound's changelog as a log: what a successor needs, and what it must refuse."""

from tests.mutants.mutant import Mutant

LOG = "stream/deltas/test_log.py::"
NEEDED = (LOG + "test_what_is_needed_holds_everything",)
REFUSED = (LOG + "test_a_log_that_is_not_what_was_written_is_refused",)
BREACH = "a successor lacks accounts, whose users start again at count 0"

MUTANTS = (
    Mutant(
        name="needed one record later",
        family="changelogs",
        file="stream/deltas/rolling.py",
        old="return min((shelf.oldest for",
        new="return 1 + min((shelf.oldest for",
        breach=BREACH,
        tests=NEEDED,
        quick=True,
    ),
    Mutant(
        name="names that came during a round are passed over",
        family="changelogs",
        file="stream/deltas/rolling.py",
        old="self._ahead.append((size, record))",
        new="self._ahead.append((size, record + 1))",
        breach=BREACH,
        tests=NEEDED,
    ),
    Mutant(
        name="more names taken as written than were",
        family="changelogs",
        file="stream/deltas/rolling.py",
        old="shelf.written(packed.names, record)",
        new="shelf.written(packed.names + 1, record)",
        breach=BREACH,
        tests=NEEDED,
    ),
    Mutant(
        name="closed periods come back",
        family="changelogs",
        file="stream/deltas/restoring.py",
        old="logged.clear(period)",
        new="logged.periods()",
        breach="accounts of a period that is over are restored, and never go",
        tests=NEEDED,
    ),
    Mutant(
        name="digests of the records before are not compared",
        family="changelogs",
        file="stream/deltas/restoring.py",
        old="if before is not None and record.before != before:",
        new="if before is not None and len(record.before) != len(before):",
        breach="records of another log count as this one's",
        tests=REFUSED,
    ),
    Mutant(
        name="a mark of another transaction",
        family="changelogs",
        file="stream/deltas/restoring.py",
        old="or digest_of(self._raw_mark) != last.mark:",
        new="or not last.mark:",
        breach="an offset that was changed is read on at",
        tests=REFUSED,
    ),
    Mutant(
        name="a beginning that was cut off",
        family="changelogs",
        file="stream/deltas/restoring.py",
        old='self._first > max(1, mark["needs"])',
        new='self._first > max(1, mark["record"])',
        breach=BREACH,
        tests=REFUSED,
    ),
    Mutant(
        name="altered records",
        family="changelogs",
        file="stream/deltas/record.py",
        old="if digest_of(number, memoryview(value)[1 + DIGEST_BYTES :]) != digest:",
        new="if len(digest) != DIGEST_BYTES:",
        breach="counts that somebody changed are taken for those that were written",
        tests=REFUSED,
    ),
    Mutant(
        name="a transaction too many is deleted",
        family="changelogs",
        file="agents/kafka/transactions.py",
        old="while len(self._known) > 1 and self._known[1][0] <= needs:",
        new="while len(self._known) > 1 and self._known[0][0] < needs:",
        breach=BREACH,
        tests=("agents/kafka/test_trimmer.py::test_nothing_that_is_needed_is_deleted",),
    ),
    Mutant(
        name="a retired metric returns to a partition that went on without it",
        family="changelogs",
        file="stream/bound.py",
        old='if metric.label in mark.get("retired", ()):',
        new='if metric.label in mark.get("returned", ()):',
        breach=BREACH,
        tests=("stream/test_bound.py::test_a_retired_metric_never_returns_to_a_partition_that_went_on_without_it",),
    ),
    Mutant(
        name="accounts that the mark does not know",
        family="changelogs",
        file="stream/bound.py",
        old='if due is None and "accounts" in mark and any(found):',
        new='if due is None and "accounts" in mark and not found:',
        breach="of a retired metric accounts are restored in part, and the others' users start again at count 0",
        tests=("stream/test_bound.py::test_accounts_that_the_mark_does_not_know_are_refused",),
    ),
)
