"""Restores the accounts of a source partition from its changelog, record by record as they come from Kafka.

A log that is not exactly as it was written is refused.
"""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from shoal.mechanisms.accounts import Accounts
from shoal.mechanisms.stores.packed import Logged, select
from shoal.models.errors import FailStop
from shoal.stream.deltas.record import CLEARED, KEPT, NO_DIGEST, PREFIX, LogRecord, decode, digest_of
from shoal.stream.deltas.rolling import Rolling
from shoal.stream.deltas.writing import LogEnd
from shoal.stream.state_mark import FORMAT, MARK, REMEDY, newer

Mark = dict[str, Any]


class Restoring:
    """One restoration: `judge` may refuse the mark, `adopt` is given the mark and the end of the log at last."""

    def __init__(
        self,
        where: str,
        accounts: Sequence[Accounts],
        judge: Callable[[Mark], None],
        adopt: Callable[[Mark, LogEnd], None],
        *,
        is_wanted: Callable[[bytes], bool] | None = None,
    ) -> None:
        self._where, self._accounts, self._judge, self._adopt = where, accounts, judge, adopt
        self._is_wanted = is_wanted  # whether to restore what a name holds; None: all names are restored
        self._by_tag: dict[bytes, Logged] = {one.tag: one for each in accounts for one in each.logged}
        self._raw_mark: bytes | None = None
        self._first = 0  # number of the first record
        self._last: LogRecord | None = None
        self.is_empty = True
        self.needs_beginning = False  # whether the state needs the topic's first record

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """Restore the next record.

        Raises:
            FailStop: the record does not follow the one before.
        """
        self.is_empty = False
        if key == MARK:
            self._raw_mark = value
        elif key is not None and key.startswith(PREFIX):
            self._take_record(key, value or b"")
        else:
            raise self._torn("has other records among its own")

    def done(self) -> None:
        """Complete the restoration, after the last record.

        Raises:
            FailStop: the state is not whole, or not this partition's.
        """
        if self._raw_mark is None:
            if self.is_empty:
                self.needs_beginning = True  # a topic whose records were all deleted is not one that never had any
                return
            raise FailStop(f"{self._where}: its changelog has accounts but no mark, which is written last; {REMEDY}")
        mark: Mark = orjson.loads(self._raw_mark)
        self._judge(mark)
        rolling = Rolling([one for each in self._accounts for one in each.logged])
        last = self._last
        if last is None or self._first > max(1, mark["needs"]):
            raise self._torn("lacks records that are needed")
        if mark["record"] != last.number or digest_of(self._raw_mark) != last.mark:
            raise self._torn("does not end as its mark says")
        self.needs_beginning = mark["needs"] == 0
        rolling.restored(mark["needs"])
        self._adopt(mark, LogEnd(rolling, last.number, last.digest))

    def _take_record(self, key: bytes, value: bytes) -> None:
        if value[:1] > bytes((FORMAT,)):
            raise FailStop(newer(self._where, value[0]))
        try:
            record = decode(key, value)
        except ValueError as error:
            raise self._torn(f"has a record that {error}") from None
        if self._last is None:
            self._first = record.number
        before = NO_DIGEST if record.number == 1 else None if self._last is None else self._last.digest
        if self._last is not None and record.number != self._last.number + 1:
            raise self._torn("lacks records, or has some twice")
        if before is not None and record.before != before:
            raise self._torn("has a record that does not follow the one before it")
        self._last = record._replace(value=b"")
        try:
            self._restore(record)
        except ValueError as error:
            raise self._torn(f"has a record that {error}") from None

    def _restore(self, record: LogRecord) -> None:
        for one in self._by_tag.values():
            one.begin(record.number)
        for kind, tag, period, width, entries in record.sections():
            logged = self._by_tag.get(tag)
            if logged is None:
                continue  # of a retired metric
            if kind == CLEARED:
                logged.clear(period)
            elif width != logged.width:
                raise ValueError("has numbers of another size")
            else:
                if self._is_wanted is not None:
                    entries = select(entries, width, self._is_wanted)
                logged.take(period, entries, in_order=kind == KEPT)

    def _torn(self, what: str) -> FailStop:
        return FailStop(f"{self._where}: its changelog {what}; users would start again at count 0: {REMEDY}")
