"""Mutants of whose samples count under relation add-remove, and of keys that nobody declared."""

from functools import partial

from tests.mutants.mutant import Mutant

ACCOUNTS = "mechanisms/two_sided/test_accounts.py::"
TAKES = ACCOUNTS + "test_a_unit_that_is_removed_takes_its_contributions_with_it_and_no_other"
RESTART = ACCOUNTS + "test_a_restart_counts_nothing_anew"


FOUND = "mechanisms/two_sided/test_found_keys.py::"
LAW = FOUND + "test_a_key_is_shown_by_exactly_the_law_of_a_draw_at_each_tick"
LOOK = FOUND + "test_a_look_at_one_word_says_no_other_than_the_draw"
SILENT = FOUND + "test_silent_candidates_need_no_work_until_the_threshold_changes"
NAMES = FOUND + "test_no_two_draws_share_a_name"
GATE = FOUND + "test_a_key_without_a_newcomer_is_never_shown_however_many_samples_it_has"
BESIDE = FOUND + "test_when_a_key_is_shown_depends_on_no_other_key"
HISTORY = FOUND + "test_all_that_came_since_the_start_is_in_the_first_release_once"
STAYS = FOUND + "test_n_stays_where_a_window_forgets_what_came"
AGAIN = FOUND + "test_a_restart_shows_the_same_keys_at_the_same_ticks"
ALONE = "privacy/test_presence_cases.py::test_whatever_a_unit_sends_changes_no_byte[alone in a key]"
LARGE = FOUND + "test_numbers_beyond_those_of_floats_are_exact"
HIDDEN = "stream/test_hidden_groups.py::test_nothing_tells_of_a_key_before_it_is_shown"
AUDITED = "privacy/test_auditor.py::test_no_configuration_of_a_family_tells_more_than_its_epsilon[found]"


def of(module: str, name: str, old: str, new: str, breach: str, *tests: str, quick: bool = False) -> Mutant:
    """One of a module."""
    file = f"mechanisms/two_sided/{module}.py"
    return Mutant(name=name, family="selection", file=file, old=old, new=new, breach=breach, tests=tests, quick=quick)


of_accounts = partial(of, "accounts")
of_candidates = partial(of, "candidates")
of_groups = partial(of, "groups")


MUTANTS = (
    of_accounts(
        "the whole weight in each key",
        "newcomer(before + 1, rule.weights[before])",
        "newcomer(before + 1, rule.weights[0])",
        "a person with several keys has a weight above 1 in all, and loses more than epsilon",
        TAKES,
        quick=True,
    ),
    of_accounts(
        "a newcomer with every sample",
        " and member not in members.held",
        "",
        "a person with many samples in a key counts there as many",
        TAKES,
    ),
    of_accounts(
        "keys forgotten by a restart",
        "members.put(member, 1)",
        "members.held[member] = 1",
        "after a restart a person is a newcomer once more",
        RESTART,
    ),
    of_accounts(
        "steps forgotten by a restart",
        "steps.put(member, 1)",
        "steps.held[member] = 1",
        "after a restart a person counts twice in a step",
        RESTART,
    ),
    of_accounts(
        "one cap for each key",
        "account = accounts.get(user)\n        if account is None:",
        "user += (group or '').encode()\n        account = accounts.get(user)\n        if account is None:",
        "a person's samples move the counters of all keys by more than m",
        TAKES,
    ),
    of_accounts(
        "records of other keys",
        'return "undeclared" if self.declared is not None and group not in self.declared else None',
        "return None",
        "whether a person has samples left depends on what does not count",
        TAKES,
    ),
    of_accounts(
        "users of every sample",
        "if rule.once is not None and not self._is_first(member, effective, is_new=is_new):",
        "if False:",
        "a person counts more than once in a number of users",
        TAKES,
    ),
    of(
        "keys",
        "a unit that begins within a step",
        '_once(spec) == "step" and (spec.privacy_unit.period or 0) % step',
        '_once(spec) == "step" and step < 1',
        "whether a unit counts in a step hangs on the unit before: without that one, others count and find other keys",
        "mechanisms/two_sided/test_keys.py::test_what_makes_no_sense_is_refused",
    ),
    of_accounts(
        "a newcomer over the cap",
        '        if account & COUNT_MASK >= rule.max_contributions:\n            return "over_cap"\n',
        "        if account & COUNT_MASK >= rule.max_contributions:\n"
        "            for weight in rule.weights[-1:]:\n"
        "                self._send(group, effective, user, newcomer(1, weight))\n"
        '            return "over_cap"\n',
        "a person who has no samples left finds keys for ever",
        TAKES,
    ),
    of_accounts(
        "a newcomer beyond the keys that have a weight",
        "            if before < len(rule.weights):\n"
        "                self._send(group, effective, user, newcomer(before + 1, rule.weights[before]))\n",
        "            for weight in rule.weights[before : before + 1] or rule.weights[-1:]:\n"
        "                self._send(group, effective, user, newcomer(before + 1, weight))\n",
        "a person counts in the finding of more keys than their weight is for",
        TAKES,
    ),
    of_candidates(
        "a stale wait",
        "self._waking.pop(group, None)\n        if not candidate.weight:",
        "if not candidate.weight:",
        "at the tick of a change the old draw counts beside the new one: two draws at one tick",
        LAW,
        quick=True,
    ),
    of_candidates(
        "a draw named by n",
        'self._words(group, "cross", number)',
        'self._words(group, "cross", candidate.weight)',
        "at a new threshold the words of the last draw are used again",
        SILENT,
        LAW,
    ),
    of_candidates(
        "another rho at each draw",
        'lambda: self._words(group, "rho")',
        'lambda: self._words(group, "rho", number)',
        "rho has to be one draw for all ticks: fresh ones lose more than epsilon",
        NAMES,
    ),
    of_candidates(
        "another rho at each doubling",
        'lambda: self._words(group, "rho")',
        'lambda: self._words(group, "rho", self._renewal)',
        "rho has to be one draw for all ticks, those with another threshold included",
        NAMES,
    ),
    of_candidates(
        "a wait forgotten by a restart",
        "        if waking:\n            self._wake(group, waking)\n",
        "",
        "after a crash a key is shown at another tick: the outcomes of two draws are seen",
        AGAIN,
    ),
    of_candidates(
        "a weight forgotten by a restart",
        "candidate.weight, candidate.changed, waking, candidate.samples, candidate.total, *writings = value",
        "_, candidate.changed, waking, candidate.samples, candidate.total, *writings = value",
        "n falls: each neighbour pays for both draws",
        AGAIN,
    ),
    of_candidates(
        "draws by how many keys a partition has",
        'lambda: self._words(group, "rho")',
        'lambda: self._words(group, "rho", len(self._held))',
        "when a key is shown depends on who else is there, and on partitions: Kafka and a file differ",
        BESIDE,
    ),
    of_candidates(
        "n as a float",
        "candidate.weight += weight",
        "candidate.weight = int(float(candidate.weight) + weight)",
        "a unit more changes nothing, or more than its weight",
        LARGE,
    ),
    of_candidates(
        "a threshold that nobody looks at again",
        "if candidate.changed < tick:",
        "if candidate.changed < 0:",
        "a silent key keeps the chances of a lower threshold: delta is spent twice",
        SILENT,
        LAW,
    ),
    of_candidates(
        "a gate of records",
        "        if not candidate.weight:\n            return\n",
        "",
        "a key is shown that has no support: delta is for keys of a positive weight",
        GATE,
    ),
    of_candidates(
        "n by records",
        "weight += weight_of(contribution.total)",
        "weight += weight_of(contribution.total) + 1",
        "a message counts as a unit",
        LAW,
    ),
    of_candidates(
        "n of one tick",
        "candidate.weight += weight",
        "candidate.weight = weight",
        "n falls: each neighbour pays for both draws",
        LAW,
    ),
    of_candidates(
        "history twice",
        "ticks[tick] = plus(ticks.get(tick, NOTHING), came)",
        "ticks[tick] = plus(plus(ticks.get(tick, NOTHING), came), came)",
        "what came before a key was shown moves its sums twice",
        HISTORY,
    ),
    of_candidates(
        "candidates forgotten",
        "            del ticks[old]\n",
        "            del ticks[old]\n            candidate.weight = 0\n",
        "n falls by age: each neighbour pays for both draws",
        STAYS,
    ),
    Mutant(
        name="a key that is seen before it is shown",
        family="selection",
        file="stream/release.py",
        old="self._metric(key)  # before anything",
        new="self._group(key, group_name(key))  # before anything",
        breach="what a worker shows of its groups has a key that one person alone may have",
        tests=(HIDDEN,),
    ),
    of_groups(
        "no value where nothing came",
        "                yield self._close(group, contributions)\n\n    def _silent(",
        "                closed = self._close(group, contributions)\n"
        "                yield closed if contributions else closed._replace(estimate=None)\n\n    def _silent(",
        "that a value is null tells that nobody came",
        ALONE,
    ),
    of_groups(
        "how many came, in a release",
        "                yield self._close(group, contributions)\n\n    def _silent(",
        "                closed = self._close(group, contributions)\n"
        '                closed.estimate.details["samples"] = sum(one.samples for one in contributions)\n'
        "                yield closed\n\n    def _silent(",
        "an exact number of samples",
        ALONE,
    ),
    of_groups(
        "releases from the first record on",
        "releaser.begin(tick - self._first,",
        "releaser.begin(0,",
        "counters that begin with somebody's record instead of the start",
        HISTORY,
    ),
    Mutant(
        name="audited: the whole weight in each key",
        family="selection",
        file="mechanisms/two_sided/accounts.py",
        old="newcomer(before + 1, rule.weights[before])",
        new="newcomer(before + 1, max(rule.weights))",
        breach="a person with several keys has a weight above 1 in all, and loses more than epsilon",
        tests=(AUDITED,),
    ),
    Mutant(
        name="audited: all of epsilon for the counters, too",
        family="selection",
        file="mechanisms/two_sided/statistic.py",
        old="epsilon=spec.epsilon - keys.selection_epsilon(spec)",
        new="epsilon=spec.epsilon",
        breach="finding keys has an epsilon of its own, which nothing is charged for",
        tests=(AUDITED,),
    ),
    Mutant(
        name="audited: keys shown too early",
        family="selection",
        file="mechanisms/selection/first_crossing.py",
        old="return _threshold(self, self._doubling(tick))",
        new="return _threshold(self, self._doubling(tick)) - self.unit",
        breach="keys of one person alone are shown with more than delta",
        tests=(AUDITED,),
    ),
    Mutant(
        name="audited: a past that counts twice",
        family="selection",
        file="mechanisms/two_sided/candidates.py",
        old="candidate.samples, candidate.total = plus((candidate.samples, candidate.total), came)",
        new="candidate.samples, candidate.total = plus(plus((candidate.samples, candidate.total), came), came)",
        breach="what came before a key was shown moves its sums twice",
        tests=(AUDITED,),
    ),
    Mutant(
        name="a look that is too sure",
        family="selection",
        file="mechanisms/selection/first_crossing.py",
        old="word + 1 + ticks * _chance(self.epsilon / self.unit, missing) <= WORD",
        new="word + 1 + _chance(self.epsilon / self.unit, missing) <= WORD",
        breach="keys are shown by another law than the one that delta is for",
        tests=(LAW, LOOK),
    ),
)  # fmt: skip
