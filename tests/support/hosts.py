"""Hosts of one deployment, each with its own copy of the configuration: what a rolling deploy goes over."""

import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.deployment import Deployment, completed
from tests.support.workers import Worker, shoal, tails, wait_until


class Hosts:
    """Some hosts, each with a file and a worker that it keeps running as a supervisor does."""

    def __init__(self, shoals: Deployment, count: int, *, static: bool = False) -> None:
        self.shoals = shoals
        self.static = static
        self.files = [shoals.folder / f"host-{number}.toml" for number in range(count)]
        self.running: dict[int, Worker] = {}
        self._starts = 0

    def write(self, *metrics: Mapping[str, Any]) -> None:
        """The newest configuration, as yet on no host."""
        self.shoals.metrics = [completed(metric) for metric in metrics]
        self.shoals.write_config()

    def deploy(self, host: int) -> None:
        """Bring the newest configuration to a host; a worker that runs there does not see it."""
        shutil.copy(self.shoals.config, self.files[host])

    def start(self, host: int) -> Worker:
        """Start the host's worker with the host's file."""
        self._starts += 1
        log = self.shoals.folder / f"host-{host}-{self._starts}.log"
        worker = Worker(self.files[host], log, f"host-{host}" if self.static else None)
        self.shoals.workers.append(worker)
        self.running[host] = worker
        return worker

    def deploy_and_start(self, *hosts: int) -> None:
        for host in hosts:
            self.deploy(host)
            self.start(host)

    def replace(self, host: int) -> None:
        """Stop the worker, if it runs, bring the newest file and start again: one step of a rolling update."""
        if self.running[host].alive:
            self.running[host].stop()
        self.deploy_and_start(host)

    def retire(self, metric: str) -> None:
        retired = shoal("budget", self.shoals.config, "--retire", metric)
        assert retired.returncode == 0, retired.stderr

    def refused(self, host: int) -> str:
        """The worker that is started with the host's file ends at once, and says why."""
        worker = self.start(host)
        assert worker.exit_status() == 1
        return worker.last_word

    def outdated(self, *hosts: int) -> Sequence[str]:
        """These workers end by themselves, with one line each."""
        assert [self.running[host].exit_status() for host in hosts] == [1] * len(hosts)
        return [self.running[host].last_word for host in hosts]

    def wait_shared(self, partitions: int) -> None:
        """Until those that live work on all partitions of sources and contributions."""

        def shared() -> bool:
            living = [worker for worker in self.running.values() if worker.alive]
            return sum(worker.owned for worker in living) == partitions and all(worker.owned for worker in living)

        wait_until(shared, 120, lambda: tails(list(self.running.values())))
