"""The golden corpus made by the kernel: it must have the bytes of the twin, which is the specification."""

import pytest

from shoal.agents.lane import unknown_of_config
from tests.golden.case import Case
from tests.golden.compare import checks_of
from tests.golden.configurations import CASES
from tests.golden.driver import config_of
from tests.golden.store import slug
from tests.support.cover import in_a_loop

# Of the other cases the twin reads everything in both lanes, so there is nothing to compare.
KNOWN = [case for case in CASES if not any(unknown_of_config(config_of(case)).values())]


@in_a_loop
@pytest.mark.parametrize("case", KNOWN, ids=[slug(case.name) for case in KNOWN])
def test_every_byte_of_the_corpus_is_the_kernels_too(case: Case) -> None:
    moved = (check(*arguments) for check, arguments in checks_of(case, "kernel"))
    assert [told for told in moved if told is not None] == []


def test_the_kernel_reads_enough_of_the_corpus() -> None:
    """Else this file would compare next to nothing."""
    assert len(KNOWN) > 0.4 * len(CASES)
