"""Mutants of what cells of few users and distributions of cells promise."""

from tests.mutants.mutant import Mutant

COVERAGE = "mechanisms/selection/test_few_users_point.py::"
LAW = COVERAGE + "test_points_are_drawn_with_their_exact_law"
AVERAGE = "mechanisms/slot/means/test_few_users.py::test_one_user_moves_the_average_by_no_more_than_its_noise_is_for"
PART = "mechanisms/slot/means/test_few_users_part.py::"
DISTRIBUTION = "mechanisms/slot/test_distribution.py::"
LEVELS = DISTRIBUTION + "test_no_neighbour_moves_a_level_by_more_than_its_noise_is_for_and_one_by_just_so_much"
CHOICE, FEW = "mechanisms/selection/few_users_point.py", "mechanisms/slot/means/few_users.py"
BALL, VALUES = "mechanisms/slot/means/few_users_ball.py", "mechanisms/slot/means/few_users_values.py"
LAWS = "mechanisms/slot/means/test_few_users_ball.py::"
EXACT = LAWS + "test_points_are_drawn_with_their_exact_law"
TREE, BINS = "mechanisms/slot/bin_tree.py", "mechanisms/slot/distribution.py"

POINTS = (
    Mutant(
        name="garbage without delta",
        family="few users",
        file=CHOICE,
        old="exponent.exp() / decimal(delta))",
        new="exponent.exp())",
        breach="points near one user alone are given more often than with probability delta",
        tests=(COVERAGE + "test_no_neighbours_lose_more_than_epsilon_and_delta",),
        quick=True,
    ),
    Mutant(
        name="garbage for delta alone",
        family="few users",
        file=CHOICE,
        old="garbage = max(1 + 1 / exponent, exponent.exp() / decimal(delta))",
        new="garbage = exponent.exp() / decimal(delta)",
        breach="with little epsilon and a large delta all weights change by more than exp(epsilon / 2)",
        tests=(COVERAGE + "test_none_weighs_what_the_proof_asks_for",),
    ),
    Mutant(
        name="points at twice their rate",
        family="few users",
        file=CHOICE,
        old="self.rate * (most - near)",
        new="2 * self.rate * (most - near)",
        breach="a weight and the sum of weights change by exp(epsilon) each",
        tests=(LAW,),
    ),
    Mutant(
        name="balls that lack a point",
        family="few users",
        file=CHOICE,
        old="number + radius + 1, -1",
        new="number + radius, -1",
        breach="the law is not the one that is proved",
        tests=(COVERAGE + "test_stretches_are_all_points_that_a_number_is_near",),
    ),
    Mutant(
        name="undecided is kept",
        family="few users",
        file=CHOICE,
        old="if drawn < least:",
        new="if drawn <= least:",
        breach="weights are those that were rounded up, which neighbours do not share",
        tests=(COVERAGE + "test_where_a_number_is_not_decided_more_bits_are_drawn",),
    ),
    Mutant(
        name="a last round",
        family="few users",
        file=CHOICE,
        old="        while True:\n            drawn = wide_uniform(ends[-1], words)",
        new="        for _ in range(1):\n            drawn = wide_uniform(ends[-1], words)",
        breach="no release, because it took long: how long depends on how users agree",
        tests=(COVERAGE + "test_a_proposal_that_is_not_kept_is_followed_by_another",),
    ),
    Mutant(
        name="a prior for all of epsilon",
        family="few users",
        file=FEW,
        old="point_choice(part, cell, cell.epsilon / 2).choose",
        new="point_choice(part, cell, cell.epsilon).choose",
        breach="the average comes on top",
        tests=(AVERAGE,),
    ),
    Mutant(
        name="an average for all of epsilon",
        family="few users",
        file=FEW,
        old="DiscreteLaplace(width / (cell.epsilon / 2)",
        new="DiscreteLaplace(width / cell.epsilon",
        breach="the prior comes on top",
        tests=(AVERAGE,),
    ),
    Mutant(
        name="users' means not clipped",
        family="few users",
        file=FEW,
        old="sum(min(max(mean, low), high) for mean",
        new="sum(mean for mean",
        breach="a user moves the sum by the whole range",
        tests=(AVERAGE,),
        quick=True,
    ),
    Mutant(
        name="users' means clipped to twice the width",
        family="few users",
        file=FEW,
        old="low, high = point * PARTS - width // 2, point",
        new="low, high = point * PARTS - 3 * width // 2, point",
        breach="a user moves the sum by more than its noise is for",
        tests=(AVERAGE,),
    ),
    Mutant(
        name="a point of users with many different values",
        family="few users",
        file=FEW,
        old="part_for_point([len(samples) for",
        new="part_for_point([len(set(samples)) for",
        breach="who takes part, which is told, depends on how many different values a user has",
        tests=(PART + "test_a_neighbour_has_the_same_part",),
        quick=True,
    ),
    Mutant(
        name="an average of users with many different values",
        family="few users",
        file=FEW,
        old="part_for_average([len(samples) for",
        new="part_for_average([len(set(samples)) for",
        breach="the noise goes by the number of those who take part, which depends on values",
        tests=(PART + "test_a_neighbour_has_the_same_part",),
    ),
    Mutant(
        name="users take part by their values",
        family="few users",
        file=FEW,
        old="if len(samples) >= part.least",
        new="if sum(samples) >= part.least",
        breach="a user comes and goes with its values, and `samples` says so",
        tests=(PART + "test_a_neighbour_has_the_same_part",),
    ),
)

BALLS = (
    Mutant(
        name="garbage of balls for the rounds alone",
        family="few users, several values",
        file=BALL,
        old="return max(super().garbage, _rest(self.rate, self.numbers))",
        new="return _rest(self.rate, self.numbers)",
        breach="points near one user alone are given more often than with probability delta",
        tests=(LAWS + "test_no_neighbours_lose_more_than_epsilon_and_delta",),
        quick=True,
    ),
    Mutant(
        name="points of balls at twice their rate",
        family="few users, several values",
        file=BALL,
        old="self.rate * (most - min(near, self.cap))",
        new="2 * self.rate * (most - min(near, self.cap))",
        breach="a weight and the sum of weights change by exp(epsilon) each",
        tests=(EXACT,),
    ),
    Mutant(
        name="a point for each user who proposes it",
        family="few users, several values",
        file=BALL,
        old="rest += share * wide_uniform(near, words)",
        new="rest += share * wide_uniform(1, words)",
        breach="a user's points weigh once more for every user near them: s times as much, which one user changes",
        tests=(EXACT,),
        quick=True,
    ),
    Mutant(
        name="none as if it weighed more than it does",
        family="few users, several values",
        file=BALL,
        old="if is_below_exp(rest, self.rate * most, bits, words):\n                    return None",
        new="if is_below_exp(rest, self.rate * (most + 1), bits, words):\n                    return None",
        breach="points near one user alone are given more often than with probability delta",
        tests=(EXACT,),
    ),
    Mutant(
        name="proposals that are not uniform in their ball",
        family="few users, several values",
        file=BALL,
        old="if left >= 0 and bernoulli_exp(left * coordinates, 2 * limit, words):",
        new="if left >= 0:",
        breach="the law is not the one that is proved: the middle of a user's ball tells of that user",
        tests=(LAWS + "test_all_points_of_a_ball_come_alike",),
    ),
    Mutant(
        name="values of users with many different samples",
        family="few users, several values",
        file=VALUES,
        old="part_of([len(samples) for samples in users], cell)",
        new="part_of([len(set(map(tuple, samples))) for samples in users], cell)",
        breach="who takes part, which is told, depends on how many different values a user has",
        tests=("mechanisms/slot/means/test_few_users_values.py::test_a_neighbour_has_the_same_part",),
    ),
)

TREES = (
    Mutant(
        name="samples that leave",
        family="distribution",
        file=BINS,
        old="return [2 * most / (epsilon * share)",
        new="return [most / (epsilon * share)",
        breach="a sample leaves a node and enters another, the noise is for one of them",
        tests=(LEVELS,),
        quick=True,
    ),
    Mutant(
        name="each level for all of epsilon",
        family="distribution",
        file=BINS,
        old="return [2 * most / (epsilon * share) for share in tree.shares]",
        new="return [2 * most / epsilon for share in tree.shares]",
        breach="the levels compose, and each uses epsilon",
        tests=(LEVELS,),
    ),
    Mutant(
        name="a distribution without a cap",
        family="distribution",
        file=BINS,
        old="for index in samples[:cap]:",
        new="for index in samples:",
        breach="a user moves more samples than the noise is for",
        tests=(LEVELS,),
        quick=True,
    ),
    Mutant(
        name="levels share their noise",
        family="distribution",
        file=BINS,
        old='draws.subkey("distribution", level)',
        new='draws.subkey("distribution", 0)',
        breach="differences of nodes on two levels are exact",
        tests=(DISTRIBUTION + "test_the_noise_of_a_level_is_that_of_its_scale_and_key",),
    ),
    Mutant(
        name="nodes without noise",
        family="distribution",
        file=BINS,
        old="noised.append([node + draw for",
        new="noised.append([node if level else node + draw for",
        breach="all bins are exact",
        tests=(DISTRIBUTION + "test_the_noise_of_a_level_is_that_of_its_scale_and_key",),
    ),
    Mutant(
        name="shares of levels rounded up",
        family="distribution",
        file=TREE,
        old="Fraction(math.floor(root",
        new="Fraction(math.ceil(root",
        breach="the levels together use more than epsilon",
        tests=("mechanisms/slot/test_bin_tree.py::test_the_shares_are_all_of_epsilon_and_no_more",),
    ),
)

MUTANTS = (*POINTS, *BALLS, *TREES)
