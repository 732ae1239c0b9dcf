"""The Faust app: three agents over batches, and the settings that were found to matter.

The agents only hand batches to the host; they show the way of the data.
"""

from pathlib import Path
from typing import Any

import faust
from yarl import URL

from shoal.agents.kafka import fast_records
from shoal.agents.kafka.settings import KafkaSettings
from shoal.agents.kafka.transport import transport_for
from shoal.agents.worker.host import Host
from shoal.agents.worker.tables import TableManager, declare_tables
from shoal.stream.machine import Domain


class ShoalApp(faust.App):
    """A Faust app that writes no files."""

    host: Host

    def _create_directories(self) -> None:
        """All state is in Kafka: no folder is needed."""


def make_app(settings: KafkaSettings, domain: Domain, partitions: dict[str, int]) -> ShoalApp:
    """Build the app; `partitions` has the number of partitions of every topic that is read."""
    fast_records.verify()
    host = Host(settings, domain)
    app = _faust_app(settings, sum(partitions.values()))
    app.host = host
    host.app = app
    app.transport = transport_for(host)([_url(broker) for broker in settings.brokers.split(",")], app)
    app.on_partitions_revoked.connect(host.on_revoked)  # type: ignore[arg-type]
    app.on_rebalance_complete.connect(host.on_rebalance_complete)  # type: ignore[arg-type]
    declare_tables(app, host, partitions)
    declare_agents(app, host)
    return app


def declare_agents(app: ShoalApp, host: Host) -> None:
    """Declare the three agents. Each message is one batch of one partition; the host keeps partitions apart."""
    s = host.settings

    @app.agent(_topic(app, *host.domain.sources), name=f"{s.app}.bound")
    async def bound(stream: Any) -> None:
        """Events in, contributions out."""
        async for event in stream.events():
            host.accept(event.message)

    @app.agent(_topic(app, s.contributions), name=f"{s.app}.release")
    async def release(stream: Any) -> None:
        """Contributions in, releases out."""
        async for event in stream.events():
            host.accept(event.message)

    @app.agent(_topic(app, s.releases, s.activations), name=f"{s.app}.audit")
    async def audit(stream: Any) -> None:
        """Releases in, audit log out."""
        async for event in stream.events():
            host.accept(event.message)


def _topic(app: Any, *names: str) -> Any:
    return app.topic(*names, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")


def _url(broker: str) -> URL:
    return URL(f"kafka://{broker.strip()}")


def _faust_app(settings: KafkaSettings, all_partitions: int) -> ShoalApp:
    return ShoalApp(
        settings.app,
        broker=[_url(broker) for broker in settings.brokers.split(",")],
        store="memory://",
        datadir=Path("/nonexistent"),
        TableManager=TableManager,
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        processing_guarantee="at_least_once",  # Faust's exactly_once leaves outputs out of its transactions
        broker_commit_interval=1.0,
        broker_request_timeout=120.0,
        broker_session_timeout=settings.session_timeout,
        broker_heartbeat_interval=settings.session_timeout / 4,
        broker_rebalance_timeout=settings.rebalance_timeout,
        # One queue serves all partitions of an agent, and counts batches. A full queue stops all of them.
        stream_buffer_maxsize=5 * all_partitions + 16,
        stream_wait_empty=False,
        table_standby_replicas=0,
        autodiscover=False,
    )
