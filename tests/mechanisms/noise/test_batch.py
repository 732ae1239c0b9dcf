"""Draws in blocks: the same bits as one by one, whatever the key says, and the stated law."""

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.mechanisms.noise import batch, keyed
from shoal.mechanisms.noise.keyed import Bits, derive
from shoal.mechanisms.noise.laplace import DiscreteLaplace
from tests.mechanisms.mechanism_cases import KEY, chi_square
from tests.support.cover import in_a_loop
from tests.support.effort import examples

SCALES = st.fractions(Fraction(1, 3), 100) | st.builds(
    lambda bits, part: (1 << bits) * part, st.integers(0, 85), st.fractions(1, 2)
)


@examples(20)
@given(scale=SCALES, subkey=st.binary(min_size=32, max_size=32), start=st.integers(0, 10**6), count=st.integers(0, 300))
@example(scale=Fraction(10), subkey=KEY, start=keyed.MAX_INDEX - 5000, count=5000)
@example(scale=Fraction(1 << 40), subkey=KEY, start=7, count=batch.CHUNK + 40)
@example(scale=Fraction(1, 1 << 30), subkey=KEY, start=0, count=300)
def test_a_block_is_its_draws_one_by_one(scale: Fraction, subkey: bytes, start: int, count: int) -> None:
    noise = DiscreteLaplace(scale, subkey)
    block = noise.draw_block(start, count).tolist()
    assert block == [noise.draw(index) for index in range(start, start + count)]
    assert all(type(value) is int for value in block)


@examples(20)
@given(
    scale=SCALES,
    subkeys=st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=5),
    indices=st.lists(st.integers(0, 10**6), max_size=300),
)
@example(scale=Fraction(10), subkeys=[KEY], indices=list(range(batch.CHUNK + 200)))
def test_one_draw_of_each_of_many_subkeys_is_the_one_by_itself(
    scale: Fraction, subkeys: list[bytes], indices: list[int]
) -> None:
    samplers = [DiscreteLaplace(scale, subkeys[place % len(subkeys)]) for place in range(len(indices))]
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(batch, "SINGLY", 1)
        monkeypatch.setattr(batch, "FEW", 0)  # no lane is drawn one by one because it is among the last
        drawn = batch.draw_each(samplers, indices)
    assert drawn == [sampler.draw(index) for sampler, index in zip(samplers, indices, strict=True)]


class Crafted(Bits):
    """Bits that a test made up, over and over; only what a draw needs beyond its own words is the key's."""

    def __init__(self, made: list[int], words: int) -> None:
        super().__init__(KEY, words)
        self.made = made

    def block(self, start: int, count: int) -> bytes:
        places = range(start * self.words, (start + count) * self.words)
        return b"".join(self.made[place % len(self.made)].to_bytes(8, "little") for place in places)


@st.composite
def awkward_words(draw: st.DrawFn) -> list[int]:
    """Words that tie with what they are compared to, or nearly do, or make the draw long."""
    a = draw(st.integers(0, (1 << 64) - 1)) >> 8 << 8
    thirds = ((1 << 64) - 1) // 3
    pool = [0, 1, 255, 1 << 62, (1 << 63) - 1, 1 << 63, thirds, thirds + 1, (1 << 64) - 1, a, a | 1, a // 2, a // 3]
    return draw(st.lists(st.sampled_from(pool) | st.integers(0, (1 << 64) - 1), min_size=1, max_size=48))


@examples(150)
@given(scale=SCALES, made=awkward_words(), few=st.sampled_from([0, 2]), very_few=st.integers(0, 2))
def test_words_that_tie_change_nothing(scale: Fraction, made: list[int], few: int, very_few: int) -> None:
    noise = DiscreteLaplace(scale, KEY)
    noise._bits = Crafted(made, noise._bits.words)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(batch, "FEW", few)  # 0: lanes go on to the end, also where they are quicker one by one
        monkeypatch.setattr(batch, "VERY_FEW", very_few)
        block = noise.draw_block(3, 5).tolist()
    assert block == [noise.draw(index) for index in range(3, 8)]


@pytest.mark.parametrize(("start", "count"), [(-1, 2), (0, -1), (keyed.MAX_INDEX - 1, 2)])
def test_a_block_out_of_range_stops(start: int, count: int) -> None:
    for scale in (10, 1 << 60, 1 << 90):
        with pytest.raises(ValueError, match="must be 0 or more|are not all in 0"):
            DiscreteLaplace(scale, KEY).draw_block(start, count)


def laplace_misfit(draws: list[int], scale: float) -> float:
    """Chi-square over 40 cells of equal probability under continuous Laplace noise, in standard deviations."""
    edges = [-scale * math.log(1 - cell / 20) for cell in range(20)]
    cells = [0] * 40
    for draw in draws:
        cell = sum(abs(draw) >= edge for edge in edges) - 1
        cells[cell + 20 * (draw < 0)] += 1
    return chi_square(cells, [len(draws) / 40] * 40)


# At these scales the discrete law and the continuous one differ by less than 2**-24 in any cell.
@in_a_loop
@pytest.mark.parametrize("bits", [25, 36, 37, 45, 60])
def test_large_scales_fit_their_law_and_no_other(bits: int) -> None:
    noise = DiscreteLaplace(1 << bits, derive(KEY, "block law", bits))
    draws = noise.draw_block(0, 20_000).tolist()
    assert laplace_misfit(draws, 2.0**bits) < 6
    assert laplace_misfit(draws, 0.7 * 2.0**bits) > 30
    assert laplace_misfit(draws, 1.3 * 2.0**bits) > 30
