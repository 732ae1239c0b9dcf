"""Mutants of the sharp mean of subgaussian samples: its centre, its clips and what they are charged."""

from tests.mutants.mutant import Mutant

TESTS = "mechanisms/continual_mean/subgaussian/"
LAW, BREACHES = TESTS + "test_centre_law.py::", TESTS + "test_subgaussian_breaches.py::"
WITHIN = LAW + "test_the_law_reaches_epsilon_where_buckets_are_many"
LOSS = BREACHES + "test_no_inputs_of_one_unit_lose_more_than_epsilon"
MOVED = BREACHES + "test_a_unit_with_all_its_blocks_at_the_ends_moves_exactly_the_width"
NEIGHBOURS = BREACHES + "test_neighbours_differ_by_no_more_than_is_paid_for"
PUBLIC = BREACHES + "test_when_it_begins_and_how_depends_on_no_value"
SHARES = BREACHES + "test_the_shares_sum_to_epsilon_exactly"
BUCKETS = "mechanisms/selection/clip_range.py"
PARAMETERS = "mechanisms/continual_mean/subgaussian/parameters.py"
RELEASER = "mechanisms/continual_mean/subgaussian/releaser.py"

CENTRES = (
    Mutant(
        name="bucket as if a unit moved costs by one",
        family="sigma",
        file=BUCKETS,
        old="costs, rate = [], epsilon / 4",
        new="costs, rate = [], epsilon / 2",
        breach="a unit moves costs by 2, and the normalising sum with them: the centre costs twice its share",
        tests=(WITHIN,),
        quick=True,
    ),
    Mutant(
        name="cost of a bucket by twice the rank",
        family="sigma",
        file=BUCKETS,
        old="max(0, 2 * below - values, values - 2 * (below + count))",
        new="max(0, 4 * below - 2 * values, 2 * values - 4 * (below + count))",
        breach="a unit moves costs by 4, the rate is for 2",
        tests=(WITHIN,),
    ),
    Mutant(
        name="all blocks of a unit in the centre",
        family="sigma",
        file=RELEASER,
        old="for total, samples in held.values():",
        new="blocks = zip(mean.doubling.weights, self._rows)\n            for total, samples in "
        "[(one, weight) for weight, rows in blocks for _, one in rows.values()]:",
        breach="a unit is counted with each of its blocks, and each moves the costs",
        tests=(LAW + "test_each_unit_gives_one_number_whatever_it_gave",),
    ),
    Mutant(
        name="centre at the exact mean",
        family="sigma",
        file=RELEASER,
        old="centre = mean.middle(clip_range.bucket(counts, spent, Bits(self._words_key).draw(0)))",
        new="centre = Fraction(sum(one for one, _ in held.values()), sum(two for _, two in held.values()))",
        breach="the mean of what waited is published without noise",
        tests=(PUBLIC,),
    ),
    Mutant(
        name="centre made with the whole epsilon",
        family="sigma",
        file=RELEASER,
        old="spent = mean.group_epsilon * mean.share(start)",
        new="spent = mean.group_epsilon",
        breach="the centre costs what is for centre and counter",
        tests=(PUBLIC,),
    ),
    Mutant(
        name="centre not charged",
        family="sigma",
        file=PARAMETERS,
        old="return self.group_epsilon * (1 - self.share(start))",
        new="return self.group_epsilon",
        breach="the counter uses up epsilon, and the centre comes on top",
        tests=(SHARES,),
    ),
    Mutant(
        name="the counter of a group has epsilon for all groups",
        family="sigma",
        file=PARAMETERS,
        old="return self.group_epsilon * (1 - self.share(start))",
        new="return self.epsilon * (1 - self.share(start))",
        breach="a unit in several groups loses epsilon in each",
        tests=(SHARES,),
    ),
)

CLIPS = (
    Mutant(
        name="subgaussian blocks not clipped",
        family="sigma",
        file=RELEASER,
        old="self._total += min(max(total, low), high)",
        new="self._total += total",
        breach="a block moves the sum by all its samples, 64 sigma outside the range",
        tests=(LOSS,),
        quick=True,
    ),
    Mutant(
        name="noise for the widest block of a unit alone",
        family="sigma",
        file=PARAMETERS,
        old="return GrowingBlue(sum(self.widths(start)),",
        new="return GrowingBlue(max(self.widths(start)),",
        breach="a unit closes every block, the noise is for one",
        tests=(MOVED,),
    ),
    Mutant(
        name="blocks beyond the cap",
        family="sigma",
        file=PARAMETERS,
        old="return tuple(ends)[: self.open_blocks(start.cap)]",
        new="return tuple(ends)",
        breach="blocks count that the width does not know of",
        tests=(MOVED,),
    ),
    Mutant(
        name="noise for half of each clip",
        family="sigma",
        file=PARAMETERS,
        old="return tuple(min(2 * half, weight * self.sample_grid.steps) for half, weight in pairs)",
        new="return tuple(min(half, weight * self.sample_grid.steps) for half, weight in pairs)",
        breach="a block moves from one end of its interval to the other, the noise is for half of that",
        tests=(MOVED,),
    ),
    Mutant(
        name="a clip without its slack paid",
        family="sigma",
        file=PARAMETERS,
        old="return self._widths(start.reach, start.slack)[: self.open_blocks(start.cap)]",
        new="return self._widths(start.reach, 0)[: self.open_blocks(start.cap)]",
        breach="intervals are wider than the noise is for by what the centre may be off",
        tests=(MOVED,),
    ),
    Mutant(
        name="noise for samples in the range",
        family="sigma",
        file=PARAMETERS,
        old="return tuple(min(2 * half, weight * self.sample_grid.steps) for half, weight in pairs)",
        new="return tuple(min(2 * half, weight * self.grid.steps) for half, weight in pairs)",
        breach="samples lie on both sides of the range, and a block moves by more than its weight in ranges",
        tests=(BREACHES + "test_intervals_are_as_wide_as_the_noise_is_made_for",),
    ),
)

DECISIONS = (
    Mutant(
        name="it begins with units that lie high",
        family="sigma",
        file=RELEASER,
        old="[len(rows) for rows in self._rows]",
        new="[sum(total > 0 for _, total in rows.values()) for rows in self._rows]",
        breach="when a group begins, its cap and its clips tell how many units lie at the low end",
        tests=(PUBLIC,),
        quick=True,
    ),
    Mutant(
        name="clips as wide as units differ",
        family="sigma",
        file=RELEASER,
        old="self._open(start, centre)\n        for level",
        new="start = start._replace(slack=max(total // samples for total, samples in held.values()))\n"
        "        self._open(start, centre)\n        for level",
        breach="the largest of units' means is published without noise, as the size of the noise",
        tests=(PUBLIC,),
    ),
    Mutant(
        name="a subgaussian block that comes twice counts twice",
        family="sigma",
        file=RELEASER,
        old="if contribution.pseudonym in waiting:",
        new="if contribution.pseudonym is None:",
        breach="a unit's block is counted that another one replaces: a bug elsewhere would go on",
        tests=(BREACHES + "test_a_block_that_comes_twice_while_it_waits_stops",),
    ),
)

MUTANTS = (*CENTRES, *CLIPS, *DECISIONS)
