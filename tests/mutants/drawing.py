"""Mutants of how the groups of a tick draw their noise together."""

from tests.mutants.mutant import Mutant

TOGETHER = "mechanisms/test_draws_together.py::test_groups_that_draw_together_are_as_each_alone"
MUTANTS = (
    Mutant(
        name="one subkey for all groups that draw together",
        family="noise",
        file="mechanisms/noise/batch.py",
        old='b"".join([sampler.words(index) for',
        new='b"".join([samplers[0].words(index) for',
        breach="all groups of a tick have the same noise: the difference of two of them is exact",
        tests=("mechanisms/noise/test_batch.py::test_one_draw_of_each_of_many_subkeys_is_the_one_by_itself",),
        quick=True,
    ),
    Mutant(
        name="another node for groups that draw together",
        family="noise",
        file="mechanisms/noise/batch.py",
        old='b"".join([sampler.words(index) for',
        new='b"".join([sampler.words(index + 1) for',
        breach="a node has one noise in a block and another one alone: what is common to two releases is not",
        tests=("mechanisms/noise/test_batch.py::test_one_draw_of_each_of_many_subkeys_is_the_one_by_itself",),
    ),
    Mutant(
        name="one scale for counters of different trees",
        family="noise",
        file="mechanisms/counters/binary.py",
        old="if lot[0][0].tree is counter.tree",
        new="if lot",
        breach="blocks of a high level, which move by more, get the noise of a low one",
        tests=(TOGETHER + "[2-full]", TOGETHER + "[2-multi-tree]"),
    ),
    Mutant(
        name="groups take in what came before their turn",
        family="noise",
        file="mechanisms/groups.py",
        old="            for group, contributions in some:\n                yield self._close(group, contributions)",
        new="            yield from [self._close(group, contributions) for group, contributions in some]",
        breach="a state has what is not released yet and still waits: after a crash it counts twice",
        tests=(TOGETHER + "[1000-naive]",),
    ),
)
