"""One metric in one source partition: from an event to a sample in the accounts."""

from typing import Any

from shoal.mechanisms.accounts import Accounts
from shoal.models.events import Refused, read_user, read_value
from shoal.stream.topic import Metric


class Intake:
    """Reads the samples of a metric from events, and gives them to the accounts of the partition."""

    __slots__ = (
        "_add", "_clip", "_get_user", "_get_value", "_place_of", "_reading", "_user_path", "accounts", "metric",
    )  # fmt: skip

    def __init__(self, metric: Metric, accounts: Accounts) -> None:
        self.metric, self.accounts = metric, accounts
        # Called for every event, so looked up once.
        self._get_user, self._get_value, self._place_of = metric.get_user, metric.get_value, metric.place_of
        self._user_path, self._reading = metric.section.user, metric.section.reading
        self._clip, self._add = metric.clip, accounts.add

    def take_in(self, event: dict[str, Any], raw: bytes, time: int, effective: int) -> str | None:
        """Count the metric's sample. If it cannot be read or does not count, return why, and change nothing."""
        try:
            user = read_user(self._get_user(event), raw, self._user_path, self._reading)
            group = None if self._place_of is None else self._place_of(event, raw)
            value = self._clip(read_value(self._get_value(event)))
        except Refused as refused:
            return refused.reason
        except Exception:  # a record that breaks the reader is bad input too: none may stop the stream
            return "error"
        return self._add(user, group, value, time, effective)
