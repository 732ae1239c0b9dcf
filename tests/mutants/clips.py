"""Mutants of clip ranges that are chosen in private: numbers, when, which, and what is released before and after."""

from tests.mutants.mutant import Mutant

END = "mechanisms/selection/test_upper_end.py::"
KEY = "mechanisms/two_sided/test_clipped.py::"
ONE = KEY + "test_a_unit_gives_one_number_that_of_its_first_counted_sample_in_that_samples_key"
TOLD = KEY + "test_nothing_is_told_before_the_choice_and_then_all_that_came_under_its_rung[mean]"
NAMES = KEY + "test_no_draw_has_the_name_of_another_nor_of_those_that_find_the_key"
ALONE = KEY + "test_the_choice_is_made_of_the_numbers_alone_and_where_they_lie"
MOVES = END + "test_a_unit_moves_no_cost_by_more_than_1_less_the_share_and_some_by_that[share0]"
WHEN = END + "test_it_is_made_for_sure_once_there_are_so_many_units_and_before_by_its_law"


def mutant(name: str, file: str, old: str, new: str, breach: str, *tests: str, quick: bool = False) -> Mutant:
    return Mutant(name=name, family="clips", file=file, old=old, new=new, breach=breach, tests=tests, quick=quick)


def of_end(name: str, old: str, new: str, breach: str, *tests: str, quick: bool = False) -> Mutant:
    return mutant(name, "mechanisms/selection/upper_end.py", old, new, breach, *tests, quick=quick)


def of_key(name: str, old: str, new: str, breach: str, *tests: str, quick: bool = False) -> Mutant:
    return mutant(name, "mechanisms/two_sided/clipped.py", old, new, breach, *tests, quick=quick)


MUTANTS = (
    mutant(
        "a number for each sample",
        "mechanisms/two_sided/accounts.py",
        "        if number == 1:\n",
        "        if number:\n",
        "a unit moves ranks as often as it has samples, in all its keys, and is charged once",
        ONE,
        quick=True,
    ),
    of_key(
        "ranks of samples",
        "            tick = tick if self._statistic.history else 0\n",
        "            tick = tick if self._statistic.history else 0\n"
        "            self._numbers[contribution.number - SAMPLES_AT] += contribution.samples\n",
        "a unit with many samples moves ranks by all of them",
        ALONE,
        TOLD,
    ),
    of_key(
        "a counter before the choice",
        "            return self._statistic.without_counters()\n",
        "            first = self._statistic.counters(0, self._key, self._group)\n"
        "            for one in self._past():\n"
        "                first.add(one)\n"
        "            first.close()\n"
        "            return first.estimate()\n",
        "a unit's samples enter counters twice: at the full width, and again with the past",
        TOLD,
        quick=True,
    ),
    of_key(
        "an exact count before the choice",
        "            return self._statistic.without_counters()\n",
        "            return replace(self._statistic.without_counters(), counts={'count': sum(self._numbers)})\n",
        "how many units are there is told without noise",
        TOLD,
        "privacy/test_presence.py::test_nor_does_it_where_a_clip_range_is_chosen_but_for_when_and_which[0]",
    ),
    of_key(
        "a gate at the crossing",
        "        if not self._clip.is_due(",
        "        if not sum(self._numbers) or not self._clip.is_due(",
        "a choice tells for sure that somebody is there, and no delta covers that",
        TOLD,
    ),
    of_end(
        "a share of the units that there are",
        "        wanted = self.share.numerator * sum(numbers)\n",
        "        wanted = min(self.share.numerator * sum(numbers), 2 * self.share.denominator // 100)\n",
        "a unit moves a rank by 1, and the noise is made for less",
        MOVES,
    ),
    of_end(
        "as many are needed as are there",
        "max(0, self.needed + rho - units)",
        "max(0, min(self.needed, units) + rho - units)",
        "the threshold moves with the units, and when it is crossed tells of each",
        WHEN,
    ),
    of_end(
        "a share beyond a half",
        "        if self.share > Fraction(1, 2):\n",
        "        if self.share > 1:\n",
        "a unit below moves a rank by the share, which is more than is charged",
        END + "test_what_would_cost_more_or_nothing_is_refused[given0-share must be 1/2 at most]",
    ),
    of_end(
        "a choice at twice its epsilon",
        "self.epsilon / (2 * (1 - self.share) * self.share.denominator)",
        "self.epsilon / ((1 - self.share) * self.share.denominator)",
        "the choice loses twice what is charged for it",
        END + "test_a_rung_is_chosen_by_its_law[share2]",
    ),
    of_end(
        "a range that is chosen of samples at the rung",
        "        above = accumulate(numbers[:-1], initial=0)\n",
        "        above = accumulate(numbers)\n",
        "the range leaves out what it is to hold",
        END + "test_a_rung_is_chosen_by_its_law[share2]",
        ALONE,
    ),
    of_key(
        "rho by the name of the key's own",
        'self._words("clip-rho")',
        'self._words("rho")',
        "one draw for two mechanisms: each tells of the other",
        NAMES,
    ),
    of_key(
        "a crossing by the name of the key's own",
        'self._words("clip-cross", self._t)',
        'self._words("cross", self._t)',
        "one draw for two mechanisms: each tells of the other",
        NAMES,
    ),
    of_key(
        "one draw for all ticks",
        'self._words("clip-cross", self._t)',
        'self._words("clip-cross", 1)',
        "the tick of the choice tells at which tick somebody came",
        NAMES,
    ),
    of_key(
        "a rho of the range at each tick",
        'self._rho = self._clip.rho(self._words("clip-rho"))',
        'self._rho = self._clip.rho(self._words("clip-rho", self._t))',
        "rho has to be one draw for all ticks: fresh ones lose more than epsilon",
        NAMES,
    ),
    of_key(
        "values above the range",
        "        if contribution.number - SAMPLES_AT < self._rung:\n",
        "        if contribution.number < self._rung:\n",
        "a sample moves a counter by more than its noise is made for",
        TOLD,
    ),
    of_key(
        "a past that enters twice",
        "list(self._past())",
        "[*self._past(), *self._past()]",
        "what came before the choice moves the counters twice",
        TOLD,
    ),
    mutant(
        "counters at all of epsilon",
        "mechanisms/two_sided/statistic.py",
        "spec.epsilon - keys.selection_epsilon(spec) - keys.clip_epsilon(spec)",
        "spec.epsilon - keys.selection_epsilon(spec)",
        "the choice of the range is not charged",
        "mechanisms/two_sided/test_keys.py::test_what_a_clip_says_and_what_is_left_for_the_counters",
    ),
    mutant(
        "a choice at the step that shows a key, untold",
        "mechanisms/two_sided/groups.py",
        "activations=[shown, *closed.activations])",
        "activations=[shown])",
        "a charged output is in no activation: the audit log lacks what says where the range ends",
        "mechanisms/two_sided/test_clipped_restarts.py::test_a_key_that_is_found_chooses_from_all_numbers_since_the_start",
    ),
)  # fmt: skip
