"""Mutants of what one user may do: clipping, caps, priors, sums, and decisions that must not see values."""

from tests.mutants.mutant import Mutant

MEANS = "mechanisms/test_statistic_laws.py::TestMean::"
MEDIAN = "mechanisms/selection/test_median.py::"
EXPONENTIAL = "mechanisms/noise/test_keyed.py::test_the_exponential_mechanism_has_its_exact_law"
BOUND = "stream/test_bound.py::"
SENSITIVITY = "privacy/test_sensitivity.py::"

CLIPPING = (
    Mutant(
        name="values above the range pass",
        family="clipping",
        file="mechanisms/grid.py",
        old="if y >= self.steps:\n            return self.steps",
        new="if y >= self.steps:\n            return int(min(y, 1e300))",
        breach="one value moves a sum without bound",
        tests=("mechanisms/test_grid_blocks_checks.py::test_numbers_however_large_are_clipped[1e+308-1000]",),
    ),
    Mutant(
        name="values below the range pass",
        family="clipping",
        file="mechanisms/grid.py",
        old="if y <= 0:\n            return 0",
        new="if y <= 0:\n            return int(max(y, -1e300))",
        breach="one value moves a sum without bound",
        tests=("mechanisms/test_grid_blocks_checks.py::test_numbers_however_large_are_clipped[-1e+308-0]",),
    ),
    Mutant(
        name="integers beyond every float pass",
        family="clipping",
        file="mechanisms/grid.py",
        old="return self.steps if x > 0 else 0",
        new="return int(x)",
        breach="one value moves a sum without bound",
        tests=("mechanisms/test_grid_blocks_checks.py::test_numbers_however_large_are_clipped",),
    ),
)

CAPS = (
    Mutant(
        name="uncapped user",
        family="caps",
        file="mechanisms/continual_mean/accounts.py",
        old="elif account & COUNT_MASK >= self._cap:",
        new="elif account < 0:",
        breach="a user contributes as often as the user likes",
        tests=(BOUND + "test_samples_over_the_cap_are_counted_and_nothing_else",),
        otherwise="a unit's sample beyond max_contributions",
    ),
    Mutant(
        name="bounder without a cap",
        family="caps",
        file="mechanisms/statistic.py",
        old="if count > self.max_contributions:",
        new="if count > 1 << 31:",
        breach="the second line of defence is gone: a bug in accounts would cost privacy, not stop",
        tests=(MEANS + "test_the_cap_holds[naive]",),
        quick=True,
    ),
    Mutant(
        name="cap off by one",
        family="caps",
        file="mechanisms/statistic.py",
        old="if count > self.max_contributions:",
        new="if count > self.max_contributions + 1:",
        breach="a user moves the sum by one value more than the noise is for",
        tests=(MEANS + "test_the_cap_holds[naive]",),
    ),
    Mutant(
        name="width for one value",
        family="caps",
        file="mechanisms/continual_mean/naive.py",
        old="self.max_contributions * self.grid.steps",
        new="self.grid.steps",
        breach="the noise hides one value of a user, not all m",
        tests=(SENSITIVITY + "test_the_shares_of_a_user_who_is_everywhere_sum_to_epsilon_exactly[1-3-1]",),
    ),
    Mutant(
        name="groups not limited",
        family="caps",
        file="mechanisms/continual_mean/accounts.py",
        old="if count >= self._rule.groups:",
        new="if count > self._rule.groups:",
        breach="a user is in one group more than epsilon was divided by",
        tests=(BOUND + "test_further_groups_of_a_user_are_left_out_by_arrival",),
        quick=True,
    ),
    Mutant(
        name="user and group run together",
        family="caps",
        file="mechanisms/continual_mean/accounts.py",
        old='key = user if group is None else len(user).to_bytes(2, "big") + user + group.encode()',
        new="key = user if group is None else user + group.encode()",
        breach="two users share one account, and what one is counted for the other is not",
        tests=(BOUND + "test_user_and_group_are_never_confused",),
    ),
    Mutant(
        name="a user in every partition",
        family="caps",
        file="stream/bound.py",
        old="return not self._checks or",
        new="return self._checks or",
        breach="a user whose events are spread has the cap once in each partition",
        tests=(BOUND + "test_a_user_must_be_in_the_partition_that_the_partitioner_gives",),
    ),
)

PRIORS = (
    Mutant(
        name="rate doubled",
        family="prior",
        file="mechanisms/selection/median.py",
        old="epsilon / 4, words)",
        new="epsilon / 2, words)",
        breach="the exponential mechanism loses twice what was charged",
        tests=(MEDIAN + "test_the_median_is_drawn_with_its_exact_law",),
    ),
    Mutant(
        name="costs of sensitivity 2",
        family="prior",
        file="mechanisms/selection/median.py",
        old="return [max(upto[i] - histogram[i], upto[-1] - upto[i]) for i in range(count)]",
        new="return [abs(upto[i] - histogram[i] - upto[-1] + upto[i]) for i in range(count)]",
        breach="one array moves a cost by 2, the rate is for 1",
        tests=(MEDIAN + "test_one_array_moves_each_cost_by_at_most_one[5-4]",),
    ),
    Mutant(
        name="arrays filled in the order of values",
        family="prior",
        file="mechanisms/selection/median.py",
        old="(-unit.samples, unit.effective, unit.pseudonym)",
        new="(-unit.samples, unit.total, unit.pseudonym)",
        breach="one user's values decide who lies in which array: many array means move, not one",
        tests=(MEDIAN + "test_who_lies_where_is_decided_without_values_and_without_arrival",),
        quick=True,
    ),
    Mutant(
        name="the best candidate too often",
        family="prior",
        file="mechanisms/selection/exponential.py",
        old="rate.numerator * (costs[index] - least)",
        new="2 * rate.numerator * (costs[index] - least)",
        breach="the exponential mechanism at twice its rate",
        tests=(EXPONENTIAL,),
    ),
    Mutant(
        name="no chance for the worst candidates",
        family="prior",
        file="mechanisms/selection/exponential.py",
        old="index = uniform(len(costs), words)",
        new="index = min(uniform(len(costs), words), len(costs) - 2 + (len(costs) < 3))",
        breach="an outcome that a neighbour could give is impossible: unbounded loss",
        tests=(EXPONENTIAL,),
    ),
)

VALUES = (
    Mutant(
        name="huge values rejected",
        family="values decide",
        file="models/events.py",
        old="if kind is not float and kind is not int:",
        new="if kind is not float and kind is not int or abs(field) > 1e300:",
        breach="a dead letter, and the count in a release, say that a value was huge",
        tests=("privacy/test_acceptance.py::test_no_number_decides_whether_its_record_is_accepted",),
        quick=True,
    ),
    Mutant(
        name="two parsers, two depths",
        family="values decide",
        file="models/events.py",
        old="if len(raw) > 2 * MAX_DEPTH and _depth(raw) > MAX_DEPTH:",
        new="if len(raw) < 0:",
        breach="a value decides which parser reads a record, and they do not accept the same depth",
        tests=("privacy/test_acceptance.py::test_the_depth_of_a_record_is_judged_the_same_by_both_parsers",),
    ),
    Mutant(
        name="nothing released where all values are equal",
        family="values decide",
        file="mechanisms/continual_mean/naive.py",
        old="if not t:",
        new="if not t or self._total in (0, t * self._mean.grid.steps):",
        breach="that there is no release says what the values are",
        tests=("privacy/test_neighbours.py::test_where_all_values_are_equal_the_general_path_is_taken",),
        quick=True,
    ),
    Mutant(
        name="no noise over a sum of zero",
        family="values decide",
        file="mechanisms/continual_mean/naive.py",
        old="self._total + self._counter.noise(t)",
        new="self._total + (self._total and self._counter.noise(t))",
        breach="an exact zero says that all values are the least",
        tests=("mechanisms/test_breaches.py::test_noise_does_not_depend_on_the_sum",),
    ),
    Mutant(
        name="a tick ordered by values",
        family="values decide",
        file="stream/tick_queue.py",
        old="CANONICAL = itemgetter(0, 1, 2, 3)",
        new="CANONICAL = itemgetter(0, 5, 1, 2, 3)",
        breach="values decide whose block activates a level, hence what counts",
        tests=("stream/test_tick_queue.py::test_values_have_no_say_in_the_order_of_a_tick",),
    ),
)

SHOWN = (
    Mutant(
        name="parts are counted",
        family="values decide",
        file="stream/release.py",
        old='self.counters["woke_late"] += sum(samples)',
        new='self.counters["woke_late"] += sum(1 for _ in samples)',
        breach="a worker's metrics show how many buckets the values of a tick are in",
        tests=(
            "stream/test_release.py::"
            "test_what_wakes_late_is_counted_by_samples_as_the_number_of_parts_depends_on_values",
        ),
    ),
    Mutant(
        name="messages cut by filled cells",
        family="values decide",
        file="stream/contributions.py",
        old="most_cells(samples, self._metric.bounder.parts) *",
        new="len(flat) // 3 *",
        breach="the number of messages, which a worker's metrics and errors tell, shows how many buckets values are in",
        tests=("privacy/test_leaving.py::test_a_bucket_of_its_own_does_not_cut_a_message",),
    ),
    Mutant(
        name="sources paced by filled cells",
        family="values decide",
        file="stream/tick_queue.py",
        old="add_samples(self.samples, flat)",
        new="self.samples = {0: len(self.held.keys() | set(flat[::3]))}",
        breach="when a source is held back, hence its lag, shows how many buckets values are in",
        tests=("privacy/test_leaving.py::test_a_bucket_of_its_own_does_not_hold_a_source_back",),
    ),
    Mutant(
        name="a value in a counter's name",
        family="values decide",
        file="models/events.py",
        old='raise Refused("no-value" if field is MISSING else "bad-value")',
        new='raise Refused("no-value" if field is MISSING else f"bad-value {field}")',
        breach="a value is shown by the counters and logs of a worker",
        tests=(BOUND + "test_bad_input_is_a_dead_letter_with_reason_and_origin",),
    ),
    Mutant(
        name="key in what is shown",
        family="keys",
        file="agents/audit/key_file.py",
        old="secret: bytes = field(repr=False)",
        new="secret: bytes = field(repr=True)",
        breach="a log line or an error holds the key, and with it the exact values of every sum",
        tests=("agents/audit/test_key_file.py::test_the_key_is_not_in_what_is_shown_of_it",),
    ),
    Mutant(
        name="fingerprint is a part of the key",
        family="keys",
        file="agents/audit/key_file.py",
        old="return sha256(FINGERPRINT_DOMAIN + secret).hexdigest()[:16]",
        new="return secret.hex()[:16]",
        breach="SQL and logs hold a quarter of the key",
        tests=("agents/audit/test_key_file.py::test_the_key_is_not_in_what_is_shown_of_it",),
    ),
)

SUMS = (
    Mutant(
        name="float sum",
        family="sums",
        file="mechanisms/continual_mean/naive.py",
        old="self._total += contribution.total",
        new="self._total = int(float(self._total) + contribution.total)",
        breach="rounding depends on the sum so far: one value moves it by more than its width, or not at all",
        tests=("mechanisms/test_breaches.py::test_sums_are_exact_however_large",),
        quick=True,
    ),
    Mutant(
        name="float grid index",
        family="sums",
        file="mechanisms/grid.py",
        old="return int(y + 0.5)",
        new="return y",
        breach="values off the grid: the low digits of a sum say who is in it, whatever the noise",
        tests=("mechanisms/test_grid_blocks_checks.py::test_a_value_becomes_the_nearest_index_or_the_nearer_end",),
        quick=True,
    ),
    Mutant(
        name="merged samples counted twice",
        family="sums",
        file="stream/tick_queue.py",
        old="old[0] += samples",
        new="old[0] += 2 * samples",
        breach="where blocks of a tick are merged a sample is two elements of the counter",
        tests=("stream/test_tick_queue.py::test_partials_add_up_to_their_exact_sums",),
    ),
)

MUTANTS = (*CLIPPING, *CAPS, *PRIORS, *VALUES, *SHOWN, *SUMS)
