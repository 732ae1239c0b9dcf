"""Intake: one metric in one source partition: events in, accounts kept, blocks out.

An account holds, per user (and group), the number of samples so far and the open block's sum. The cap, the limit of
groups and the check of the partition are decided here, by pattern alone. What has a step is in `step_intake.py`.
"""

from collections import Counter
from typing import Any

from shoal.mechanisms.statistic import COUNT_MASK
from shoal.models.events import Refused, read_user, read_value
from shoal.stream.contributions import Outlet
from shoal.stream.topic import Metric, TopicPlan

GROUPS_BYTES = 4


class Intake:
    """The accounts of one metric's users in one source partition."""

    def __init__(
        self, plan: TopicPlan, metric: Metric, partition: int, outlet: Outlet, counters: Counter[str], *, checks: bool
    ) -> None:
        self.metric = metric
        self.accounts: dict[bytes, int] = {}
        self.groups: dict[bytes, int] = {}  # user -> groups, where there are groups
        self.tag = b"a" + metric.label.encode() + b"\x00"  # what keys of accounts begin with
        self.groups_tag = b"g" + metric.label.encode() + b"\x00"
        self.samples: dict[bytes, bytes] = {}  # of open slots, where there are slots; while they are restored
        self.samples_tag = b"s" + metric.label.encode() + b"\x00"
        self._touched: dict[bytes, int] = {}
        self._touched_groups: dict[bytes, int] = {}
        self._plan, self._partition, self._counters, self._checks = plan, partition, counters, checks
        # Called for every event, so looked up once.
        self._get_user, self._get_value, self._place_of = metric.get_user, metric.get_value, metric.place_of
        self._user_path, self._reading = metric.section.user, metric.section.reading
        self._clip, self._add, self._cap = metric.clip, metric.add, metric.max_contributions
        self._send = outlet.send

    def take_in(self, event: dict[str, Any], raw: bytes, effective: int) -> None:
        """Read the metric's sample, add it to its account, and send on the block that it closes.

        Raises:
            Refused: the metric cannot use the record; nothing was touched.
        """
        user, group, value = self._read(event, raw)
        key = user if group is None else len(user).to_bytes(2, "big") + user + group.encode()
        account = self.accounts.get(key)
        if account is None:
            if not self._admit(user, group):
                return
            account = 0
        elif account & COUNT_MASK >= self._cap:
            self._counters["over_cap"] += 1
            return
        account, block = self._add(account, value)
        self.accounts[key] = self._touched[key] = account
        if block is not None:
            self._send(group, effective, user, block)

    def _read(self, event: dict[str, Any], raw: bytes) -> tuple[bytes, str | None, int]:
        """User, group or cell, and clipped value of an event.

        Raises:
            Refused: the metric cannot use the record.
        """
        try:
            user = read_user(self._get_user(event), raw, self._user_path, self._reading)
            place = None if self._place_of is None else self._place_of(event, raw)
            return user, place, self._clip(read_value(self._get_value(event)))
        except Refused:
            raise
        except Exception:  # what breaks the reader is bad input too: no record may stop the stream
            raise Refused("error") from None

    def _admit(self, user: bytes, group: str | None) -> bool:
        """Whether an account may be opened."""
        if self._checks and self._plan.partition_of(user, self._plan.source_partitions) != self._partition:
            raise Refused("wrong-partition")
        if group is None:
            return True
        count = self.groups.get(user, 0)
        if count >= self.metric.section.max_groups_per_user:
            self._counters["groups_left_out"] += 1
            return False
        self.groups[user] = self._touched_groups[user] = count + 1
        return True

    @property
    def sizes(self) -> list[int]:
        """How many records of either kind the changelog holds after `take_changes` and `drop`."""
        return [len(self.accounts), len(self.groups)]

    def restored(self) -> None:
        """`accounts` and `groups` hold what the changelog has."""

    def count(self, user: bytes, group: str | None) -> int | None:
        """Samples that a user has against the cap now; None where there is no such account."""
        prefix = b"" if group is None else len(user).to_bytes(2, "big")
        account = self.accounts.get(prefix + user + (group or "").encode())
        return None if account is None else account & COUNT_MASK

    def flush(self, promise: int | None, *, idle: bool) -> None:
        """Send what is kept for ticks that end by the promise; if the partition is idle, all. Here nothing is kept."""

    def close(self, promise: int | None) -> None:
        """No event will have an effective time before this: a user's account is for ever all the same."""

    def drop(self, most: int) -> list[tuple[bytes, bytes | None]]:
        """Tombstones of what `close` left behind, so many at most; it is forgotten with them."""
        return []

    def take_changes(self) -> list[tuple[bytes, bytes | None]]:
        """Changelog records of the accounts that changed since the last call."""
        tag, size = self.tag, self.metric.account_bytes
        changes: list[tuple[bytes, bytes | None]]
        changes = [(tag + key, account.to_bytes(size, "big")) for key, account in self._touched.items()]
        tag = self.groups_tag
        changes += [(tag + user, count.to_bytes(GROUPS_BYTES, "big")) for user, count in self._touched_groups.items()]
        self.forget_changes()
        return changes

    def forget_changes(self) -> None:
        """Nobody asks for them."""
        self._touched, self._touched_groups = {}, {}

    def forget_closed(self) -> None:
        """There is no changelog that would have to lose them."""
