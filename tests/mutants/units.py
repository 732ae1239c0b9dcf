"""Mutants of units: accounts of periods, one cap over all groups, events, and what a ledger is charged for them."""

from tests.mutants.mutant import Mutant

PRIVACY = "privacy/test_units.py::"
WORST = PRIVACY + "test_no_unit_moves_more_than_the_noise_is_made_for_and_some_move_as_much"
STREAM = "stream/test_units.py::"
MODELS = "models/config/test_unit.py::"

MUTANTS = (
    Mutant(
        name="late events in the account of another period",
        family="units",
        file="mechanisms/stepped/accounts.py",
        old="time // period != effective // period:",
        new="time // period > effective // period:",
        breach="values of one day move sums through the accounts of all days that they are folded into",
        tests=(PRIVACY + "test_a_late_event_moves_neither_the_period_it_is_in_nor_the_one_it_is_folded_into",),
        quick=True,
    ),
    Mutant(
        name="the account of the event's own time",
        family="units",
        file="mechanisms/stepped/accounts.py",
        old="""            return "late"
        accounts, members = self._forever or self._units.of(effective)
""",
        new="""            pass
        accounts, members = self._forever or self._units.of(time)
""",
        breach="who comes back to a day that is over finds a new account, as often as the old one is dropped",
        tests=(PRIVACY + "test_a_late_event_moves_neither_the_period_it_is_in_nor_the_one_it_is_folded_into",),
    ),
    Mutant(
        name="a period forgotten at its beginning",
        family="units",
        file="mechanisms/accounts.py",
        old="(period + 1) * length <= promise",
        new="period * length <= promise",
        breach="a user has the cap of a day once more in every transaction",
        tests=(PRIVACY + "test_an_account_lives_as_long_as_lateness_lets_anybody_come_back",),
        quick=True,
    ),
    Mutant(
        name="periods forgotten by the largest time",
        family="units",
        file="stream/bound.py",
        old="promise = self._event_clocks[intake.metric.clock].promise",
        new="promise = self._event_clocks[intake.metric.clock].latest",
        breach="events within the lateness find their period without accounts",
        tests=(PRIVACY + "test_an_account_lives_as_long_as_lateness_lets_anybody_come_back",),
    ),
    Mutant(
        name="periods of a user's before the restart",
        family="units",
        file="mechanisms/accounts.py",
        old="stores[kind].held[key[PERIOD_BYTES:]] = number",
        new="stores[kind].held[key[PERIOD_BYTES:]] = 0",
        breach="after a restart everybody has the cap of the open periods again",
        tests=(STREAM + "test_restarts_and_drops_anywhere_change_nothing_that_is_sent",),
    ),
    Mutant(
        name="accounts of periods not written",
        family="units",
        file="mechanisms/stepped/accounts.py",
        old="accounts.held[user] = accounts.changed[user] = account + 1",
        new="accounts.held[user] = account + 1",
        breach="after a restart everybody has the cap of the open periods again",
        tests=(STREAM + "test_unit_user_is_never_forgotten",),
        otherwise="users would start again at count 0",
    ),
    Mutant(
        name="a cap for each group",
        family="units",
        file="mechanisms/stepped/accounts.py",
        old="accounts.held[user] = accounts.changed[user] = account + 1",
        new="accounts.held[user] = accounts.changed[user] = account + (group is None)",
        breach="the total over groups is not counted, and the noise is made for one cap over all of them",
        tests=(STREAM + "test_one_cap_holds_for_all_groups_of_a_user_together",),
        quick=True,
    ),
    Mutant(
        name="a cap for each step",
        family="units",
        file="mechanisms/stepped/statistic.py",
        old="rule = Rule(spec.contribution_limit, spec.max_groups_per_user, unit.period)",
        new="rule = Rule(spec.contribution_limit, spec.max_groups_per_user, unit.period and spec.step)",
        breach="the period is that of the releases: a unit of several steps has its cap in each",
        tests=(WORST + "[user-10s]",),
    ),
    Mutant(
        name="groups of a sum without limit",
        family="units",
        file="mechanisms/stepped/accounts.py",
        old="if account // ONE_MEMBER >= self._groups:",
        new="if account // ONE_MEMBER > self._groups:",
        breach="a user counts in a group more than was said",
        tests=(STREAM + "test_further_groups_are_left_out_by_arrival_and_counted_as_such",),
    ),
    Mutant(
        name="users as events",
        family="units",
        file="mechanisms/stepped/statistic.py",
        old="if unit.is_event:",
        new="if unit.period is None:",
        breach="the cap of a person is not kept, though the noise is made for it",
        tests=(WORST + "[user]",),
    ),
    Mutant(
        name="events with the noise of no event",
        family="units",
        file="models/config/metric.py",
        old="return 1 if self.max_contributions is None else self.max_contributions",
        new="return self.max_contributions or 2",
        breach="an event is worth two in the books of its mechanism: what is charged is not what is lost",
        tests=(WORST + "[event]",),
    ),
    Mutant(
        name="a finer unit charged once",
        family="units",
        file="models/config/unit.py",
        old="return cost.epsilon, cost.delta",
        new="return epsilon, cost.delta",
        breach="a day of 24 hours loses 24 epsilon and is charged one",
        tests=(MODELS + "test_a_metric_is_charged_as_often_as_its_unit_touches_the_ledgers",),
    ),
    Mutant(
        name="units counted as if they were aligned",
        family="units",
        file="models/config/unit.py",
        old="return 1 + (ledger.period + unit.period - gcd(ledger.period, unit.period) - 1) // unit.period",
        new="return -(-ledger.period // unit.period)",
        breach="a period that begins within the ledger's and ends beyond it is not charged",
        tests=(MODELS + "test_so_many_units_of_a_metric_touch_one_of_the_ledgers",),
    ),
    Mutant(
        name="days by several times",
        family="units",
        file="agents/audit/registration.py",
        old="    _check_times(request, known.values())\n",
        new="",
        breach="one day of the ledger's lies in any number of a metric's days by another field",
        tests=("agents/audit/test_ledger.py::test_a_ledgers_period_is_one_of_one_time[sqlite]",),
        otherwise="DID NOT RAISE",
    ),
)
