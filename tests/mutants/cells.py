"""Mutants of users in many cells: shares of epsilon, and who is left out of which cell."""

from tests.mutants.mutant import Mutant

LAW = "mechanisms/slot/test_allotment.py::test_the_shares_of_a_users_cells_sum_to_epsilon_at_most"
SPLIT = "mechanisms/slot/test_allotment.py::test_a_split_leaves_nobody_out"
MODULE = "mechanisms/slot/allotment.py"
LOOP = "mechanisms/slot/chop_users.py"

MUTANTS = (
    Mutant(
        name="all of epsilon for every cell",
        family="cells",
        file=MODULE,
        old="return total / self.divisors[cell]",
        new="return total / 1",
        breach="a user in K cells meets K times epsilon",
        tests=(LAW,),
        quick=True,
    ),
    Mutant(
        name="divisor of the user with the fewest cells",
        family="cells",
        file=MODULE,
        old="if user not in out and sizes[user] > reached:",
        new="if user not in out and (not reached or sizes[user] < reached):",
        breach="users in more cells than that meet more than epsilon",
        tests=(LAW,),
    ),
    Mutant(
        name="divisor of the last users alone",
        family="cells",
        file=MODULE,
        old="reached = max(reached, _most_cells(portion, out, sizes, highest))",
        new="reached = _most_cells(portion, out, sizes, highest)",
        breach="in a cell of very many users, one of the first who is in many cells meets more than epsilon",
        tests=("mechanisms/slot/test_allotment.py::test_it_pauses_often_and_what_comes_of_it_is_the_same",),
    ),
    Mutant(
        name="one round too few",
        family="cells",
        file=LOOP,
        old="while self._level > most and",
        new="while self._level > most + 1 and",
        breach="users are in one cell more than epsilon was divided by",
        tests=(LAW,),
        quick=True,
    ),
    Mutant(
        name="left out of another cell",
        family="cells",
        file=LOOP,
        old="self._left[cell].append(user)",
        new="self._left[cell - 1].append(user)",
        breach="a user stays in the cells that it was counted out of",
        tests=("mechanisms/slot/test_allotment.py::test_one_who_is_everywhere_with_many_samples_costs_all_the_others",),
    ),
    Mutant(
        name="users leave in the order in which they came",
        family="cells",
        file=LOOP,
        old="runs.append(sorted(names[begin : begin + USERS]))",
        new="runs.append(names[begin : begin + USERS])",
        breach="a slot that is computed again leaves out others: two releases whose difference tells",
        tests=("mechanisms/slot/test_allotment.py::test_the_order_in_which_counts_came_has_no_say",),
    ),
    Mutant(
        name="old errors are never forgotten",
        family="cells",
        file=LOOP,
        old="if alive[top[cell]] <= 1:",
        new="if alive[top[cell]] < 1:",
        breach="none, but it is not the published algorithm any more: other users are left out, and errors are larger",
        tests=("mechanisms/slot/test_allotment.py::test_so_it_does_with_more_users_and_cells",),
    ),
    Mutant(
        name="split among more cells than were allowed for",
        family="cells",
        file=MODULE,
        old="if before > most:",
        new="if before > most + 1:",
        breach="the second line of defence is gone: a bug before it would cost privacy, not stop",
        tests=(SPLIT,),
    ),
)
