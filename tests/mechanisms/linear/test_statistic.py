"""What holds for every form of a statistic: each draw has a name of its own, and state tells of no value."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.counters.counter import Subkeys
from shoal.mechanisms.linear.sides import Side
from shoal.mechanisms.linear.statistic import step_draws
from shoal.mechanisms.statistic import Contribution
from shoal.mechanisms.sums.decays import Undecayed, Window
from tests.mechanisms.linear.forms import FORMS, NOISED, made, total

OF_VALUES = [name for name, (_, _, is_hidden) in FORMS.items() if not is_hidden]
streams = st.lists(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=2), min_size=1, max_size=9)


@pytest.mark.parametrize("decay", [Window(64), Undecayed()], ids=repr)
@pytest.mark.parametrize("form", NOISED)
def test_all_draws_of_a_metric_have_names_of_their_own(form: str, decay: Any) -> None:
    """Over keys, sides and the numbers that decayed sums ask for."""
    owners: dict[bytes, set[Any]] = {}

    def draws(key: bytes, group: bytes, side: Side) -> Subkeys:
        subkey = step_draws(key, group, side)

        def named(number: int) -> bytes:
            owners.setdefault(subkey(number), set()).add((group, side.draw, number))
            return subkey(number)

        return named

    of = made(form, decay=decay, draws=draws)
    for group in (b"", b"g", b"h"):
        releaser = of.releaser(bytes(32), group)
        for _ in range(70):
            releaser.close()
    assert {len(those) for those in owners.values()} == {1}
    assert len({name[:2] for those in owners.values() for name in those}) == 3 * len(of.sides.noised)


@pytest.mark.parametrize("form", OF_VALUES)
@given(streams)
def test_steps_that_state_keeps_follow_from_the_public_count_alone(form: str, stream: Any) -> None:
    """Two streams of one pattern: what is kept, added and dropped has the same names, whatever the values are."""
    of = made(form, epsilon=Fraction(1))
    seen = []
    for which in (0, 1):
        releaser, names = of.releaser(bytes(32), b"g"), []
        for pairs in stream:
            samples = [pair[which] for pair in pairs]
            if samples:
                releaser.add(Contribution(0, "", 0, 0, len(samples), total(of, samples)))
            releaser.close()
            added, dropped = releaser.take_changes()
            names.append(([(row.effective, row.samples) for row in added], dropped, list(releaser.kept)))
        seen.append(names)
    assert seen[0] == seen[1]
