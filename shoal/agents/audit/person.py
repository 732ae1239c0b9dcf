"""What the app keeps of one person: the accounts that bound has in the partitions which that person's events are in.

They are read from the committed changelogs. Nothing is written, no group is joined and no key is needed, so workers may
run meanwhile, or be stopped. What release keeps stands under pseudonyms, which only the key can make.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from shoal.agents.audit.replay.scan import Scan, partition_counts
from shoal.agents.kafka.settings import BOUND, KafkaSettings
from shoal.agents.kafka.topic_ids import STATE_KEY
from shoal.mechanisms.accounts import Accounts, Holding, Site
from shoal.models.config.file import Config
from shoal.models.errors import KafkaError
from shoal.stream.deltas.restoring import Restoring
from shoal.stream.partitioning import PARTITIONERS
from shoal.stream.topic import Metric, plan_topic

ATTEMPTS = 10  # to read a log whose beginning is deleted meanwhile
NO_KEY = bytes(32)  # a plan without its key reads accounts and makes no pseudonym and no noise


class Kept(NamedTuple):
    """What one metric has of a person, and where."""

    metric: Metric
    topic: str
    partition: int
    holdings: Sequence[Holding]

    def open_sum(self, holding: Holding) -> int | list[int]:
        """The sum of what does not fill a block yet, in grid steps; of several coordinates one for each."""
        unpack = self.metric.unpack
        return holding.open_sum if unpack is None else unpack(holding.open_sum, holding.samples or 0)


async def kept_of(config: Config, settings: KafkaSettings, user: bytes) -> list[Kept]:
    """What each metric of the configuration keeps of a user.

    Raises:
        KafkaError: a topic of the app is missing: no worker of it ever ran; or workers delete faster than this reads.
    """
    changelogs = {topic: settings.changelog(BOUND, topic) for topic in config.topics}
    counts = await partition_counts(settings, [*changelogs, *changelogs.values(), settings.contributions])
    kept: list[Kept] = []
    async with Scan(settings) as scan:
        for topic, changelog in changelogs.items():
            partition = PARTITIONERS[config.kafka.partitioner](user, counts[topic])
            plan = plan_topic(
                config, topic, NO_KEY,
                source_partitions=counts[topic], contributions_partitions=counts[settings.contributions],
            )  # fmt: skip
            accounts = await _restored(scan, TopicPartition(changelog, partition), plan.metrics, user)
            kept += [
                Kept(metric, topic, partition, list(one.of_user(user)))
                for metric, one in zip(plan.metrics, accounts, strict=True)
            ]
    return kept


async def _restored(
    scan: Scan, changelog: TopicPartition, metrics: Sequence[Metric], user: bytes
) -> Sequence[Accounts]:
    """The accounts of each metric, as a worker's last transaction left them.

    Workers delete the log's beginning, perhaps while it is read: records are missing then, so reading begins anew.

    Raises:
        KafkaError: that happened again and again.
    """
    for _ in range(ATTEMPTS):
        accounts = [_accounts_of(metric) for metric in metrics]
        try:
            await _restore(scan, changelog, accounts, user)
        except OffsetOutOfRangeError:
            continue
        return accounts
    raise KafkaError(
        f"{changelog.topic}[{changelog.partition}]: workers deleted its beginning {ATTEMPTS} times while it was read, "
        "as they do with what they need no more; ask again when they have less to do"
    )


async def _restore(scan: Scan, changelog: TopicPartition, accounts: Sequence[Accounts], user: bytes) -> None:
    """Restore what names hold that have the bytes of a user id, which other users' may have as well."""
    # The beginning first: what the transaction at a later end needs is never before it. The other way round, workers
    # could go on and delete in between, and what that end needs would be missing.
    (first,) = (await scan.first_offsets([changelog])).values()
    (end,) = (await scan.stable_ends([changelog])).values()
    restoring = Restoring(
        f"{changelog.topic}[{changelog.partition}]", accounts, _accept, _accept, is_wanted=lambda name: user in name
    )
    async for records in scan.read(changelog, first, end):
        for record in records:
            if record.key != STATE_KEY:
                restoring.take(record.key, record.value)
    restoring.done()


def _accounts_of(metric: Metric) -> Accounts:
    site = Site(metric.label, _nowhere, lambda _: True, durable=False)
    accounts: Accounts = metric.accounts(site)
    return accounts


def _accept(*_: Any) -> None:
    """Judge nothing: a worker does."""


def _nowhere(*_: Any) -> None:
    """Send nothing: nothing is counted here."""
