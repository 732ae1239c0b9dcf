"""Mutants of the replay: what an audit would overlook, or find where there is nothing."""

from tests.mutants.mutant import Mutant

REPLAY = "agents/audit/replay/"
PRINTS = REPLAY + "test_fingerprints.py::"

MUTANTS = (
    Mutant(
        name="partials of any tick",
        family="replay",
        file="agents/audit/replay/fingerprints.py",
        old="_coefficient(start) * self._tick(flat)",
        new="self._tick(flat)",
        breach="an audit from the events overlooks samples that were moved to another tick",
        tests=(PRINTS + "test_numbers_do_not_move_between_ticks_cells_samples_and_totals",),
        quick=True,
    ),
    Mutant(
        name="samples for totals",
        family="replay",
        file="agents/audit/replay/fingerprints.py",
        old="map(LANES[1].__getitem__, cells)",
        new="map(LANES[0].__getitem__, cells)",
        breach="an audit from the events overlooks a sum that is larger by as much as its samples are fewer",
        tests=(PRINTS + "test_numbers_do_not_move_between_ticks_cells_samples_and_totals",),
    ),
    Mutant(
        name="cells as Python compares them",
        family="replay",
        file="agents/audit/replay/fingerprints.py",
        old="if type(cell) is int and lane < len(LANES)",
        new="if isinstance(cell, int) and lane < len(LANES)",
        breach="an audit from the events overlooks that somebody else wrote a message",
        tests=(PRINTS + "test_what_json_tells_apart_is_told_apart",),
    ),
    Mutant(
        name="a clock that was never moved",
        family="replay",
        file="agents/audit/replay/bound_again.py",
        old="reached = self._watermarks() | noted",
        new="reached = self._watermarks()",
        breach="an audit from the events accuses a worker, where a version of a metric was retired",
        tests=(REPLAY + "test_bound_again.py::test_no_history_of_deploys_is_taken_for_a_forgery",),
    ),
    Mutant(
        name="a clock as it was at the last restart",
        family="replay",
        file="stream/bound.py",
        old="latest if is_new else noted.get(metric.label)",
        new="latest",
        breach="an audit from the events folds late events into other ticks than the worker did",
        tests=(REPLAY + "test_bound_again.py::test_no_history_of_deploys_is_taken_for_a_forgery",),
    ),
    Mutant(
        name="beats by the metrics that began together",
        family="replay",
        file="agents/audit/replay/bound_again.py",
        old="one.beats_ahead = ahead",
        new="pass",
        breach="an audit from the events refuses beats that the worker took",
        tests=(REPLAY + "test_bound_again.py::test_all_metrics_accept_the_same_beats_and_one_that_waits_says_nothing",),
    ),
    Mutant(
        name="a clock without a metric begins anew",
        family="replay",
        file="stream/event_time.py",
        old="return {label: latest for label in sorted(gone)",
        new="return {label: latest for label in sorted(gone)[:0]",
        breach="ticks that a clock has promised to be over get contributions",
        tests=("stream/test_bound.py::test_a_clock_keeps_its_promise_while_no_metric_has_it",),
    ),
    Mutant(
        name="slots forgotten in new groups alone",
        family="replay",
        file="agents/audit/replay/contributions.py",
        old="else self._told + self._new:",
        new="else self._new:",
        breach="a replay keeps the numbers of all users in all slots",
        tests=(REPLAY + "test_replay_slots.py::test_slots_that_are_over_are_forgotten_in_every_group",),
    ),
)
