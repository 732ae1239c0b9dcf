"""Mutants of the library: keys that are used twice, and parameters that decide privacy."""

from tests.mutants.mutant import Mutant

KEYS = "mechanisms/library/test_keys.py::"
LIBRARY = "mechanisms/library/test_library.py::"
EQUAL = "mechanisms/library/test_equality_with_runs.py::test_the_library_releases_what_a_run_does"
SECOND = KEYS + "test_a_second_input_under_a_key_is_refused_where_it_begins_to_differ"


def of(module: str, name: str, old: str, new: str, breach: str, *tests: str, quick: bool = False) -> Mutant:
    """One of a module."""
    file = f"mechanisms/library/{module}.py"
    return Mutant(name=name, family="library", file=file, old=old, new=new, breach=breach, tests=tests, quick=quick)


MUTANTS = (
    of(
        "keys",
        "another input after the first release",
        "if before and before != digest:",
        "if not self._at and before and before != digest:",
        "the difference of two streams has no noise",
        SECOND,
        quick=True,
    ),
    of(
        "keys",
        "the last input alone",
        "self._given.update(encode(*parts))",
        "self._given = hashlib.blake2b(encode(*parts), digest_size=DIGEST_BYTES)",
        "two streams that differ in what came before have one noise",
        KEYS + "test_every_stream_refuses_a_second_input",
    ),
    of(
        "keys",
        "one key for all parameters",
        'derive(self._secret, "library", "stream", *parameters)',
        "self._secret",
        "streams of other ranges or epsilons have one noise, and their difference tells of the values",
        KEYS + "test_streams_of_other_parameters_share_no_noise_under_one_key",
        quick=True,
    ),
    of(
        "streams",
        "whoever gave it",
        'self._transcript.note(user, group or "", steps)',
        'self._transcript.note(group or "", steps)',
        "the same values of other users are another stream under the same key",
        KEYS + "test_users_and_ticks_are_part_of_an_input",
    ),
    of(
        "streams",
        "samples outside all groups",
        "if (group is not None) != self._grouped:",
        "if group is not None and not self._grouped:",
        "a user counts once more in no group at all, with an epsilon that nobody charged",
        LIBRARY + "test_samples_have_what_the_statistic_needs",
    ),
    of(
        "numbers",
        "a float for an epsilon",
        "    check.exact(values)\n",
        "",
        "what is charged is not what was written",
        LIBRARY + "test_what_decides_privacy_is_exact_and_complete",
        quick=True,
    ),
    of(
        "statistics",
        "all of epsilon in each group",
        "groups=1 if self.max_groups_per_user is None else self.max_groups_per_user,",
        "groups=1,",
        "a user in several groups loses several times epsilon",
        EQUAL + "[means of groups]",
    ),
    of(
        "statistics",
        "windows of ticks and of updates",
        '("updates",) if self.stepped.of_updates else ()',
        "()",
        "windows of time and of updates have one noise, and their difference tells a value",
        KEYS + "test_streams_of_other_parameters_share_no_noise_under_one_key",
    ),
    of(
        "presence",
        "users who count with every sample",
        "            once=self._once,\n",
        "",
        "one user moves a count of users by as many as there are samples",
        EQUAL + "[users of each tick]",
    ),
    of(
        "presence",
        "groups that are found for nothing",
        "return released if self.selection is None else released + self.selection.loss",
        "return released",
        "what finds groups is not charged",
        LIBRARY + "test_losses_are_what_was_asked_for",
    ),
    of(
        "budget",
        "a delta that does not fit",
        "if loss.epsilon > left.epsilon or loss.delta > left.delta:",
        "if loss.epsilon > left.epsilon:",
        "more is charged than there is",
        LIBRARY + "test_a_budget_is_charged_or_refused_as_a_whole",
    ),
)
