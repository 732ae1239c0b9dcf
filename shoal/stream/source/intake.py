"""One metric in one source partition: from an event to a sample in the accounts."""

from typing import Any

from shoal.mechanisms.accounts import Accounts
from shoal.models.events import ERROR, Reader, Refusal
from shoal.stream.topic import Metric

Sample = tuple[bytes, str | None, int]  # user, place and value; no class, as one is made of every event


def sample_reader(metric: Metric) -> Reader[Sample]:
    """The function that reads a metric's sample; a fault of it makes a refusal, too: no record may stop the stream."""
    read_user, read_place, read_value = metric.read_user, metric.read_place, metric.read_value

    def read(event: dict[str, Any], raw: bytes) -> Sample | Refusal:
        try:
            user = read_user(event, raw)
            if type(user) is Refusal:
                return user
            place = None if read_place is None else read_place(event, raw)
            if type(place) is Refusal:
                return place
            value = read_value(event, raw)
            return value if type(value) is Refusal else (user, place, value)
        except Exception:
            return ERROR

    return read


class Intake:
    """Reads the samples of a metric from events, and gives them to the accounts of the partition."""

    __slots__ = ("_add", "_read", "accounts", "metric")

    def __init__(self, metric: Metric, accounts: Accounts) -> None:
        self.metric, self.accounts = metric, accounts
        self._read, self._add = sample_reader(metric), accounts.add  # called for every event, so looked up once

    def take_in(self, event: dict[str, Any], raw: bytes, time: int, effective: int) -> str | None:
        """Count the metric's sample. If it cannot be read or does not count, return why, and change nothing."""
        sample = self._read(event, raw)
        if type(sample) is Refusal:
            return sample.reason
        user, place, value = sample
        return self._add(user, place, value, time, effective)
