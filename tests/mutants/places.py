"""Mutants of slots in the stream: what a unit may have in slots and cells, what is sent when, shares of epsilon."""

from tests.mutants.mutant import Mutant

PRIVACY = "privacy/test_slots.py::"
FILE_RUN = PRIVACY + "test_in_a_file_run_a_unit_moves_no_more_than_it_may"
STREAM = "stream/test_slots.py::"
RULES = STREAM + "test_caps_hold_for_units_slots_and_cells_whatever_happens_to_the_worker"

MUTANTS = (
    Mutant(
        name="too late for its slot, and in the next",
        family="places",
        file="stream/release.py",
        old="return None if metric.section.is_slotted else acted // every",
        new="return acted // every",
        breach="a user's values move the slot that they were sent for, and the one in which their partition wakes",
        tests=(STREAM + "test_what_wakes_too_late_for_its_slot_counts_in_no_other",),
        quick=True,
    ),
    Mutant(
        name="late events in the slot of another unit",
        family="places",
        file="stream/slot_intake.py",
        old="if unit is not None and self._progress.time // unit != effective // unit:",
        new="if unit is not None and self._progress.time // unit > effective // unit:",
        breach="values of one hour move the slot of the next one, too",
        tests=(FILE_RUN, RULES),
        quick=True,
    ),
    Mutant(
        name="slots without end",
        family="places",
        file="stream/slot_intake.py",
        old="unit.accounts.get(name, 0) >= self._most_slots",
        new="unit.accounts.get(name, 0) > self._most_slots",
        breach="a unit is in one slot more than epsilon was shared for",
        tests=(FILE_RUN, RULES),
    ),
    Mutant(
        name="one cell more",
        family="places",
        file="stream/slot_intake.py",
        old="(account or 0) // ONE_CELL >= self._most_cells",
        new="(account or 0) // ONE_CELL > self._most_cells",
        breach="a unit is in one cell more than epsilon was split for",
        tests=(RULES,),
    ),
    Mutant(
        name="a sample more than the cap",
        family="places",
        file="stream/slot_intake.py",
        old="if count >= self._cap:",
        new="if count > self._cap:",
        breach="the cap is not what was agreed",
        tests=(RULES,),
    ),
    Mutant(
        name="slots of a unit before the restart",
        family="places",
        file="stream/slot_intake.py",
        old="self._units.forever.accounts.update(self.groups)",
        new="self._units.forever.accounts.update(dict.fromkeys(self.groups, 0))",
        breach="after a restart everybody has all slots again",
        tests=(RULES,),
    ),
    Mutant(
        name="all of epsilon in each slot",
        family="places",
        file="mechanisms/slots/statistic.py",
        old="return self.epsilon / self.max_slots",
        new="return self.epsilon",
        breach="a unit in S slots loses S times epsilon",
        tests=(FILE_RUN,),
        quick=True,
    ),
    Mutant(
        name="all of a slot in each cell",
        family="places",
        file="mechanisms/slots/statistic.py",
        old="of = replace(of, epsilon=of.epsilon / divisor, delta=of.delta / divisor, dropped=dropped)",
        new="of = replace(of, delta=of.delta / divisor, dropped=dropped)",
        breach="a unit in K cells loses K times the slot's epsilon",
        tests=(FILE_RUN,),
    ),
    Mutant(
        name="who is left out counts",
        family="places",
        file="mechanisms/slots/statistic.py",
        old="users = [samples for user, samples in members.items() if user not in out]",
        new="users = list(members.values())",
        breach="a unit moves cells that it was left out of, and that had no share of epsilon for it",
        tests=(FILE_RUN,),
    ),
    Mutant(
        name="another slot, the same noise",
        family="places",
        file="mechanisms/slots/cell.py",
        old='return derive(self._key, self._cell, purpose, "slot", part, 0, self._slot)',
        new='return derive(self._key, self._cell, purpose, "slot", part, 0, 0)',
        breach="the difference of a cell's releases in two slots is exact",
        tests=("mechanisms/slots/test_statistic.py::test_no_two_cells_slots_or_purposes_share_a_draw",),
    ),
    Mutant(
        name="a slot forgotten before it is closed",
        family="places",
        file="stream/release.py",
        old="self._closings.begin(metric, first, self._waiting.peek(label))",
        new="self._closings.begin(metric, first, self._waiting.pop(label, every).contributions)",
        breach="after a crash a slot is computed from what is left of it: other numbers under the same noise",
        tests=(STREAM + "test_a_slot_of_many_cells_is_closed_in_pieces_and_goes_on_after_a_crash",),
    ),
)
