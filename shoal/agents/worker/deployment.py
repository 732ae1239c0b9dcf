"""Keeps the workers of one app at one configuration while a new file reaches one worker after another.

Every few seconds the ledger's metric versions are compared with this worker's file. A version that is active there and
missing here was registered by a newer file, and a worker without that file must not work on partitions whose messages
it cannot read; a retired version must not be published any longer. Either is a fail-stop that names the version. A
supervisor then starts the worker again, with the newer file if that has arrived; until then it is refused at its start.
Versions of file runs end no worker.

The worker never waits for the ledger: a database that is away or slow stops nobody.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path

from shoal.agents.audit.app_ledger import AppLedger
from shoal.agents.worker.threads import in_thread
from shoal.models.config.file import Config
from shoal.models.errors import FailStop, LedgerError
from shoal.models.tables import ACTIVE, RETIRED
from shoal.models.version import VersionId

LOOK_EVERY = 5.0  # seconds; for so long at most a retired version is still published


class Deployment:
    """Compares one worker's configuration with the ledger."""

    def __init__(self, path: Path, config: Config, ledger: AppLedger) -> None:
        self._path, self._ledger = path, ledger
        self._configured = {config.id_of(metric) for metric in config.metrics}

    async def watch(self) -> None:
        """Compare every few seconds, for ever.

        Raises:
            FailStop: another configuration is in use.
        """
        while True:
            with contextlib.suppress(LedgerError):
                self.judge(await in_thread(self._ledger.states_of_workers))
            await asyncio.sleep(LOOK_EVERY)

    def judge(self, states: Mapping[VersionId, str]) -> None:
        """Compare the states of all versions with the configuration.

        Raises:
            FailStop: a version is active and missing here, or retired and configured here.
        """
        for version, state in sorted(states.items()):
            if state == ACTIVE and version not in self._configured:
                raise FailStop(
                    f"{self._path}: {version} is active in the ledger and missing here: a newer "
                    "configuration is in use; start this worker with that one"
                )
        for version in sorted(self._configured):
            if states.get(version) == RETIRED:
                raise FailStop(
                    f"{self._path}: {version} is retired in the ledger and still here: a newer "
                    "configuration is in use; start this worker with that one, or take the metric out of this one"
                )
