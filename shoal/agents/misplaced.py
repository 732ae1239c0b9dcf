"""Misplaced records: records of a source partition whose user belongs to another partition.

Bound refuses them as `wrong-partition`, since all records of a user must be in one partition. A few are the fault of a
few records. A large part means that producers key records by something else than the user, or with another partitioner:
releases are then of the other part alone, and look as they always do.

The share is a number of records: a worker says it where presence is not protected, a command to those who may read the
topic.
"""

from collections.abc import Mapping
from typing import NamedTuple

REASON = "wrong-partition"
LEAST = 50  # misplaced records
LARGE = 5  # one record of this many
STRETCH = 1_000  # records after which a worker begins to count anew
NAMED = 3  # partitions, in a message
Place = tuple[str, int]  # topic and partition
ENDING = f".{REASON}"  # of a name among the counters of bound: dead_letters, metric, reason


class Share(NamedTuple):
    """Records of a source partition that have a user, and the misplaced ones among them."""

    records: int
    misplaced: int

    @property
    def is_large(self) -> bool:
        """Whether at least 50 records, and one in five, are misplaced."""
        return self.misplaced >= LEAST and self.misplaced * LARGE >= self.records

    @property
    def ratio(self) -> float:
        return self.misplaced / self.records if self.records else 0.0

    @property
    def percent(self) -> str:
        """The misplaced records in percent, rounded down: 100 % are all of them.

        >>> Share(1000, 843).percent, Share(1000, 999).percent
        ('84 %', '99 %')
        """
        return f"{100 * self.misplaced // max(1, self.records)} %"


class Placement:
    """Counts the records of a source partition, and keeps the last large share of misplaced ones.

    Counting begins anew after a stretch of 1,000 records, so that a producer that was corrected is seen.
    """

    def __init__(self) -> None:
        self.found: Share | None = None  # None: no large share in the last stretch
        self._records = 0
        self._before: dict[str, int] = {}

    def take_in(self, records: int, counters: Mapping[str, int]) -> None:
        """Take in a number of records that bound has processed; `counters`: bound's, after them."""
        self._records += records
        share = self._share(counters)
        if share.is_large:
            self.found = share
        if share.records >= STRETCH:
            self.found = share if share.is_large else None
            self._records, self._before = 0, dict(counters)

    def _share(self, counters: Mapping[str, int]) -> Share:
        """The share in this stretch, for the metric that refused most records as misplaced."""
        before = self._before
        counts = [(count - before.get(name, 0), name) for name, count in counters.items() if name.endswith(ENDING)]
        if not counts:
            return Share(self._records, 0)
        misplaced, most = max(counts)
        metric = most.removesuffix(REASON)
        refused = sum(count - before.get(name, 0) for name, count in counters.items() if name.startswith(metric))
        return Share(self._records - refused + misplaced, misplaced)


def said(shares: Mapping[Place, Share], user: str) -> str:
    """What is wrong with partitions of a topic, and what that means; `user`: the field that names the user.

    >>> said({("sales", 2): Share(1000, 843)}, "customer")[:55]
    '84 % of sales[2] is keyed by something else than custom'
    """
    each = [f"{share.percent} of {topic}[{number}]" for (topic, number), share in sorted(shares.items())]
    more = f" and a large part of {len(each) - NAMED} others" if len(each) > NAMED else ""
    names, is_one = ", ".join(each[:NAMED]) + more, len(each) == 1
    misplaced, records = (sum(share[which] for share in shares.values()) for which in (1, 0))
    return (
        f"{names} {'is' if is_one else 'are'} keyed by something else than {user}: {misplaced:,} of {records:,} "
        "records belong to users of other partitions, so they are dead letters and in no release"
    )


def remedy(user: str, partitioner: str) -> str:
    """What to do about misplaced records."""
    return (
        f"have producers key records by {user} with partitioner {partitioner}, as `shoal produce` does, or set [kafka] "
        "partitioner to theirs"
    )
