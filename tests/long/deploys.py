"""Deploys at length: hundreds of random histories on real rules, and stories of real workers on Kafka.

make test-deploys
"""

import pytest

from tests.support.rollout import play


@pytest.mark.parametrize("seed", range(100, 300))
def test_a_history_of_deploys_ends_well(seed, tmp_path):
    play(tmp_path, seed)
