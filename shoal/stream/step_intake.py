"""Intake of what has a step: sums, counts and means that may forget, for every unit.

A decayed sum is linear: a unit's samples move the sums of all groups together by so many grid steps at most, whatever
groups and steps they are in. So there is one cap over all groups, and one account for each unit:

    user           for ever
    user-day, ...  in each period of effective time. An event whose own time lies in another period is late, even where
                   late events are folded: values of one day move sums through the account of that day, and no other
    event          none: every event is a contribution of its own

Proof: docs/proofs/units.md
"""

from collections import Counter
from typing import Any

from shoal.mechanisms.statistic import COUNT_MASK
from shoal.models.events import Refused
from shoal.stream.accounts import ONE_GROUP, Book, Books, Changes
from shoal.stream.contributions import Outlet
from shoal.stream.event_time import Progress
from shoal.stream.intake import Intake
from shoal.stream.topic import Metric, TopicPlan


class EventIntake(Intake):
    """Unit event: nothing is kept.

    Nor is the partition checked: whose event it is does not matter to the guarantee, and there is no account that would
    say that the user was seen before.
    """

    def take_in(self, event: dict[str, Any], raw: bytes, effective: int) -> None:
        """Read the metric's sample and send it on.

        Raises:
            Refused: the metric cannot use the record.
        """
        user, group, value = self._read(event, raw)
        _, block = self._add(0, value)
        if block is not None:
            self._send(group, effective, user, block)


class StepIntake(Intake):
    """Units user and user-<period>."""

    def __init__(
        self, plan: TopicPlan, metric: Metric, partition: int, outlet: Outlet, counters: Counter[str],
        progress: Progress, *, checks: bool,
    ) -> None:  # fmt: skip
        super().__init__(plan, metric, partition, outlet, counters, checks=checks)
        self._progress = progress
        self._period = metric.section.of.period or 0
        self._most_groups = metric.section.max_groups_per_user
        self._books = Books(metric.section.of.period)
        if self._books.forever is not None:  # then nothing is to be sorted after a restore
            self.accounts, self.groups = self._books.forever.accounts, self._books.forever.members

    def take_in(self, event: dict[str, Any], raw: bytes, effective: int) -> None:
        """Read the metric's sample, count it in its unit's account, and send it on.

        Raises:
            Refused: the metric cannot use the record; nothing was touched.
        """
        user, group, value = self._read(event, raw)
        member = None if group is None else len(user).to_bytes(2, "big") + user + group.encode()
        book = self._books.forever or self._book(effective)
        account = book.accounts.get(user)
        if account is None:
            if self._checks and self._plan.partition_of(user, self._plan.source_partitions) != self._partition:
                raise Refused("wrong-partition")
            account = 0
        if member is not None and member not in book.members:
            if account // ONE_GROUP >= self._most_groups:
                self._counters["groups_left_out"] += 1
                return
            account += ONE_GROUP
        else:
            member = None
        if account & COUNT_MASK >= self._cap:
            self._counters["over_cap"] += 1
            return
        _, block = self._add(account & COUNT_MASK, value)
        book.accounts[user] = book.touched[user] = account + 1
        if member is not None:
            book.members[member] = 1
            book.touched_members.append(member)
        if block is not None:
            self._send(group, effective, user, block)

    def _book(self, effective: int) -> Book:
        """The accounts of the period that an event counts in."""
        period = effective // self._period
        if self._progress.time // self._period != period:
            raise Refused("late")
        return self._books.of(period)

    # ---------------------------------------------------------------- state

    @property
    def sizes(self) -> list[int]:
        """As for all others."""
        return self._books.sizes

    def restored(self) -> None:
        """Sort it by periods."""
        if self._books.forever is None:
            self._books.restore(self.accounts, self.groups)

    def count(self, user: bytes, group: str | None) -> int | None:
        """Samples of a user in the latest open period, of all groups together: there is no account of one group."""
        account = self._books.newest(user) if group is None else None
        return None if account is None else account & COUNT_MASK

    def take_changes(self) -> Changes:
        """Changelog records of the accounts that changed since the last call."""
        return self._books.take_changes(self.tag, self.groups_tag)

    def close(self, promise: int | None) -> None:
        """Periods that end by then are over."""
        if promise is not None:
            self._books.close(promise)

    def drop(self, most: int) -> Changes:
        """Some of what belongs to periods that are over."""
        return self._books.drop(self.tag, self.groups_tag, most)

    def forget_changes(self) -> None:
        """Nobody asks for them."""
        self._books.forget_changes()

    def forget_closed(self) -> None:
        """There is no changelog."""
        self._books.forget_closed()
