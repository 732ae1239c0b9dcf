"""Any order of file runs, workers, kills, outages and restores, as a state machine; what must be true at every moment.

All that was ever published is what one input makes: then no id has two values, and no user is in more groups than one
stream gives. The inputs share a beginning, so that runs do go on where others stopped.
"""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shoal.models.errors import FailStop, ShoalError
from shoal.stream import file_run
from tests.support.streams import CELLS, FULL, GROUPS, MEAN, OFTEN, App, Run, Worker, event

METRICS = {"groups": GROUPS, "cells": CELLS, "mean": MEAN, "often": OFTEN, "full": FULL}
PEOPLE = [(f"user{n % 4}", 0.25 * (n % 5), 3 * n, "ab"[n % 2]) for n in range(12)]
INPUTS = {
    "all": [event(*one) for one in PEOPLE],
    "half": [event(*one) for one in PEOPLE[:7]],
    "other values": [event(user, 1 - value, time, group) for user, value, time, group in PEOPLE],
    "a value less": [event(*one) for one in [("user0", 0.75, 0, "a"), *PEOPLE[1:]]],
    "other groups": [event(user, value, time, "cd"["ab".index(group)]) for user, value, time, group in PEOPLE],
}
names = st.sampled_from(sorted(INPUTS))
steps = st.sampled_from([2, 4, 9])  # outputs: some, and all
rarely = st.sampled_from([False, False, False, True])


class Orders(RuleBasedStateMachine):
    """An app that anything may happen to."""

    def __init__(self) -> None:
        super().__init__()
        self.cleanup = contextlib.ExitStack()
        self.cleanup.enter_context(patch.object(file_run, "CHUNK", 2))
        self.runs: list[Run] = []
        self.workers: list[Worker] = []
        self.has_copy = False

    @initialize(metric=st.sampled_from(sorted(METRICS)), topic=names)
    def begin(self, metric: str, topic: str) -> None:
        folder = Path(self.cleanup.enter_context(tempfile.TemporaryDirectory()))
        self.app = self.cleanup.enter_context(App(folder, METRICS[metric], INPUTS[topic]))
        self.streams = [self.app.stream_of(events) for events in INPUTS.values()]

    @rule(name=names, end=st.booleans(), steps=steps, together=st.sampled_from([1, 3]))
    def start_run(self, name: str, end: bool, steps: int, together: int) -> None:
        with contextlib.suppress(ShoalError):
            self.runs.append(Run(self.app, INPUTS[name], end=end, together=together))
            self._go_on(self.runs[-1], steps)

    @rule(which=st.integers(0, 3), steps=steps, away=rarely)
    @precondition(lambda self: self.runs)
    def go_on(self, which: int, steps: int, away: bool) -> None:
        with self._database(away):
            self._go_on(self.runs[which % len(self.runs)], steps)

    def _go_on(self, run: Run, steps: int) -> None:
        try:
            for _ in range(steps):
                run.step()
        except ShoalError:
            run.kill()

    @contextlib.contextmanager
    def _database(self, away: bool) -> Iterator[None]:
        self.app.is_away = away
        yield
        self.app.is_away = False

    @rule(which=st.integers(0, 3))
    @precondition(lambda self: self.runs)
    def kill(self, which: int) -> None:
        self.runs.pop(which % len(self.runs)).kill()

    @rule(apart=st.booleans())
    @precondition(lambda self: not self.workers)
    def start_workers(self, apart: bool) -> None:
        with contextlib.suppress(ShoalError):
            homes = [[0], [1]] if apart else [[0, 1]]
            self.workers = [Worker(self.app, home, bound=0 in home) for home in homes]

    @rule(which=st.integers(0, 1), count=st.sampled_from([3, 12]), away=rarely, audits=st.booleans())
    @precondition(lambda self: self.workers)
    def work(self, which: int, count: int, away: bool, audits: bool) -> None:
        worker = self.workers[which % len(self.workers)]
        with self._database(away):
            try:
                worker.bound(count)
                for home in worker.homes:
                    worker.release(home, count)
                if audits:
                    worker.audit()
            except (FailStop, ShoalError):
                worker.crash()

    @rule()
    @precondition(lambda self: self.workers)
    def crash(self) -> None:
        self.workers = []

    @rule()
    def copy(self) -> None:
        self.app.copy_log()
        self.has_copy = True

    @rule()
    @precondition(lambda self: self.has_copy)
    def restore(self) -> None:
        self.runs, self.workers = [], []
        self.app.restore_log()

    @invariant()
    def all_that_was_published_is_of_one_stream(self) -> None:
        if hasattr(self, "app"):
            assert any(self.app.rows <= stream for stream in self.streams)

    def teardown(self) -> None:
        self.cleanup.close()
