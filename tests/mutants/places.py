"""Mutants of slots in the stream: what a unit may have in slots and cells, what is sent when, shares of epsilon."""

from tests.mutants.mutant import Mutant

PRIVACY = "privacy/test_slots.py::"
FILE_RUN = PRIVACY + "test_in_a_file_run_a_unit_moves_no_more_than_it_may"
ALL_IT_HAS = PRIVACY + "test_a_unit_in_more_slots_and_cells_than_count_spends_all_it_has"
STREAM = "stream/test_slots.py::"
RULES = STREAM + "test_caps_hold_for_units_slots_and_cells_whatever_happens_to_the_worker"

MUTANTS = (
    Mutant(
        name="too late for its slot, and in the next",
        family="places",
        file="stream/release.py",
        old="return None if metric.section.kind.apart else acted // every",
        new="return acted // every",
        breach="a user's values move the slot that they were sent for, and the one in which their partition wakes",
        tests=(STREAM + "test_what_wakes_too_late_for_its_slot_counts_in_no_other",),
        quick=True,
    ),
    Mutant(
        name="late events in the slot of another unit",
        family="places",
        file="mechanisms/slot/accounts.py",
        old="time // rule.unit != effective // rule.unit:",
        new="time // rule.unit > effective // rule.unit:",
        breach="values of one hour move the slot of the next one, too",
        tests=(FILE_RUN, RULES),
        quick=True,
    ),
    Mutant(
        name="slots without end",
        family="places",
        file="mechanisms/slot/accounts.py",
        old="unit.get(name, 0) >= rule.max_slots",
        new="unit.get(name, 0) > rule.max_slots",
        breach="a unit is in one slot more than epsilon was shared for",
        tests=(FILE_RUN, RULES),
    ),
    Mutant(
        name="one cell more",
        family="places",
        file="mechanisms/slot/accounts.py",
        old="(account or 0) // ONE_MEMBER >= self._most_cells",
        new="(account or 0) // ONE_MEMBER > self._most_cells",
        breach="a unit is in one cell more than epsilon was split for",
        tests=(RULES,),
    ),
    Mutant(
        name="a sample more than the cap",
        family="places",
        file="mechanisms/slot/accounts.py",
        old="if count >= rule.max_contributions:",
        new="if count > rule.max_contributions:",
        breach="the cap is not what was agreed",
        tests=(RULES,),
    ),
    Mutant(
        name="slots of a unit before the restart",
        family="places",
        file="mechanisms/accounts.py",
        old="held[name] = number\n",
        new="held[name] = 0 if self.forever else number\n",
        breach="after a restart everybody has all slots again",
        tests=(
            "mechanisms/slot/test_accounts.py::test_a_unit_that_is_for_ever_keeps_its_slots_and_samples_through_restarts",
        ),
    ),
    Mutant(
        name="all of epsilon in each slot",
        family="places",
        file="mechanisms/slot/statistic.py",
        old="return self.epsilon / self.max_slots",
        new="return self.epsilon",
        breach="a unit in S slots loses S times epsilon",
        tests=(FILE_RUN,),
        quick=True,
    ),
    Mutant(
        name="all of a slot in each cell",
        family="places",
        file="mechanisms/slot/statistic.py",
        old="part = replace(whole, epsilon=whole.epsilon / divisor, delta=whole.delta / divisor, dropped=dropped)",
        new="part = replace(whole, delta=whole.delta / divisor, dropped=dropped)",
        breach="a unit in K cells loses K times the slot's epsilon",
        tests=(ALL_IT_HAS,),
    ),
    Mutant(
        name="who is left out counts",
        family="places",
        file="mechanisms/slot/statistic.py",
        old="users = [samples for user, samples in members.items() if user not in out]",
        new="users = list(members.values() if cell in allotment.divisors else ())",
        breach="a unit moves cells that it was left out of, and that had no share of epsilon for it",
        tests=(ALL_IT_HAS,),
    ),
    Mutant(
        name="another slot, the same noise",
        family="places",
        file="mechanisms/slot/cell.py",
        old='return derive(self._key, self._cell, purpose, "slot", part, 0, self._slot)',
        new='return derive(self._key, self._cell, purpose, "slot", part, 0, 0)',
        breach="the difference of a cell's releases in two slots is exact",
        tests=("mechanisms/slot/test_statistic.py::test_no_two_cells_slots_or_purposes_share_a_draw",),
    ),
    Mutant(
        name="a slot forgotten before it is closed",
        family="places",
        file="stream/tick_queue.py",
        old="if closed.is_part:",
        new="if closed.is_part and self._waiting.drop(self._label, tick):",
        breach="after a crash a slot is computed from what is left of it: other numbers under the same noise",
        tests=(STREAM + "test_a_slot_of_many_cells_is_closed_in_pieces_and_goes_on_after_a_crash",),
    ),
    Mutant(
        name="sums charged like slots",
        family="places",
        file="models/config/file.py",
        old="(self.relation, metric.relation), metric.kind.apart",
        new="(self.relation, metric.relation), True",
        breach="a person's periods lose more together than the ledger was charged for",
        tests=("models/config/test_cell.py::test_slots_of_one_person_lose_one_after_the_other_and_sums_together",),
    ),
)
