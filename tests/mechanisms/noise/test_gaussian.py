"""Discrete Gaussian noise: its law, its block form, and what it costs."""

import importlib
import itertools
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.mechanisms.noise import batch, gaussian, keyed
from shoal.mechanisms.noise.gaussian import DiscreteGaussian
from shoal.mechanisms.noise.keyed import derive
from shoal.mechanisms.privacy.zcdp import _FLOOR, gaussian_sigma2, largest_rho, rho_at
from tests.mechanisms.mechanism_cases import KEY, chi_square
from tests.mechanisms.noise.test_batch import Crafted, awkward_words
from tests.mechanisms.noise.test_keyed import Counting, kolmogorov
from tests.support.cover import in_a_loop
from tests.support.effort import examples

DRAWS = 20_000
FACTORS = (Fraction(1), Fraction(7, 10), Fraction(13, 10))  # of sigma
SIGMA2 = st.fractions(Fraction(1, 9), 100) | st.builds(
    lambda bits, part: (1 << bits) * part, st.integers(0, 170), st.fractions(1, 2)
)


@examples(20)
@given(
    sigma2=SIGMA2, subkey=st.binary(min_size=32, max_size=32), start=st.integers(0, 10**6), count=st.integers(0, 300)
)
@example(sigma2=Fraction(1), subkey=KEY, start=keyed.MAX_INDEX - 3000, count=3000)
@example(sigma2=Fraction(1 << 80), subkey=KEY, start=7, count=batch.CHUNK + 40)
def test_a_block_is_its_draws_one_by_one(sigma2: Fraction, subkey: bytes, start: int, count: int) -> None:
    noise = DiscreteGaussian(sigma2, subkey)
    block = noise.draw_block(start, count).tolist()
    assert block == [noise.draw(index) for index in range(start, start + count)]
    assert all(type(value) is int for value in block)


@examples(150)
@given(sigma2=SIGMA2, made=awkward_words(), few=st.sampled_from([0, 2]), very_few=st.integers(0, 2))
def test_words_that_tie_change_nothing(sigma2: Fraction, made: list[int], few: int, very_few: int) -> None:
    noise = DiscreteGaussian(sigma2, KEY)
    noise._bits = Crafted(made, noise._bits.words)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(batch, "FEW", few)
        monkeypatch.setattr(batch, "VERY_FEW", very_few)
        block = noise.draw_block(3, 5).tolist()
    assert block == [noise.draw(index) for index in range(3, 8)]


@examples(100)
@given(sigma2=SIGMA2.filter(lambda sigma2: sigma2 >= Fraction(1, 2)), y=st.fractions(0, 30))
def test_bounds_on_exponents_hold(sigma2: Fraction, y: Fraction) -> None:
    """The exponent of a proposal, exactly, is between the integers that decide."""
    noise = DiscreteGaussian(sigma2, KEY)
    b, shift = 1 << noise._log, noise.form.shift
    magnitude = math.floor(y * b)
    drawn = batch.Signed(1)
    drawn.upper[0] = magnitude >> shift
    (low,), (high,) = noise._exponents(drawn.upper)
    exponent = (magnitude - sigma2 / b) ** 2 / (2 * sigma2) * (1 << 48)
    assert int(low) <= exponent <= int(high)
    assert int(high) - int(low) <= (1 << 48) * (y + 3) / 1000


def misfit(draws: list[int], edges: list[float], probabilities: list[float]) -> float:
    """Chi-square over the cells between the edges."""
    cells = [0] * len(probabilities)
    for draw in draws:
        cells[sum(draw > edge for edge in edges)] += 1
    return chi_square(cells, [len(draws) * p for p in probabilities])


def exact_cells(sigma2: float) -> tuple[list[float], list[float]]:
    """Edges and probabilities of cells of about 1/20 each, or of single numbers."""
    weights = {k: math.exp(-k * k / (2 * sigma2)) for k in range(-400, 401)}
    total = math.fsum(weights.values())
    edges, probabilities, cell = [], [], 0.0
    for k, weight in weights.items():
        cell += weight / total
        if cell > 1 / 20 and k < 12 * sigma2**0.5:
            edges.append(float(k))
            probabilities.append(cell)
            cell = 0.0
    return edges, [*probabilities, cell + 1e-12]


# 20,000 draws: at its own sigma the misfit is about standard normal, so 6 fails once in 10**7 keys (the key is fixed).
@in_a_loop
@pytest.mark.parametrize("sigma2", [Fraction(1, 3), Fraction(1), Fraction(22, 7), Fraction(1000)])
def test_it_fits_its_sigma_and_no_other(sigma2: Fraction) -> None:
    noise = DiscreteGaussian(sigma2, derive(KEY, "gaussian", str(sigma2)))
    draws = noise.draw_block(0, DRAWS).tolist()
    fits = [misfit(draws, *exact_cells(float(sigma2 * factor**2))) for factor in FACTORS]
    assert fits[0] < 6
    assert min(fits[1:]) > 30


@in_a_loop
@pytest.mark.parametrize("bits", [30, 50, 72, 74, 100, 130, 155])  # of sigma2; the discrete law is the continuous one
def test_large_sigmas_fit_their_law_and_no_other(bits: int) -> None:
    noise = DiscreteGaussian(1 << bits, derive(KEY, "large gaussian", bits))
    draws = noise.draw_block(0, DRAWS).tolist()
    for factor in FACTORS:
        normal = NormalDist(0, float(factor) * 2 ** (bits / 2))
        edges = [normal.inv_cdf(cell / 30) for cell in range(1, 30)]
        assert (misfit(draws, edges, [1 / 30] * 30) < 6) == (factor == 1)


@pytest.mark.long
def test_it_agrees_with_opendp() -> None:
    # given as many draws of an independent implementation
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = dp.m.make_gaussian(*space, scale=25.0)([0] * DRAWS)
    # then ours cannot be told from them, and at 0.7 and 1.3 of the scale it can
    for factor in FACTORS:
        noise = DiscreteGaussian((25 * factor) ** 2, derive(KEY, "opendp gaussian", str(factor)))
        assert (kolmogorov(noise.draw_block(0, DRAWS).tolist(), theirs) < 3.5) == (factor == 1)


@in_a_loop
@pytest.mark.parametrize("sigma2", [Fraction(1, 100), Fraction(1), Fraction(39, 10), Fraction(100)])
def test_variance_is_that_of_the_law(sigma2: Fraction) -> None:
    weights = {k: math.exp(-k * k / (2 * float(sigma2))) for k in range(-300, 301)}
    exact = sum(k * k * weight for k, weight in weights.items()) / sum(weights.values())
    assert gaussian.variance(sigma2) == pytest.approx(exact, rel=1e-12)


def test_few_draws_need_more_words_than_their_own() -> None:
    noise = DiscreteGaussian(1 << 80, KEY)
    noise._bits = bits = Counting(KEY, gaussian.WORDS)
    counts = []
    for index in range(4000):
        before = bits.taken
        noise.draw(index)
        counts.append(bits.taken - before)
    assert sum(counts) / 4000 == pytest.approx(13, rel=0.05)
    assert sum(count > gaussian.WORDS for count in counts) < 20


@pytest.mark.parametrize("sigma2", [Fraction(3, 10), Fraction(1), Fraction(5)])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_the_exact_cost_of_a_shift(sigma2: Fraction, shift: int) -> None:
    """The Renyi divergence of order alpha between shifted draws is at most alpha * rho."""
    logs = {k: -k * k / (2 * float(sigma2)) for k in range(-150, 151)}
    total = math.fsum(math.exp(log) for log in logs.values())
    rho = Fraction(shift * shift) / (2 * sigma2)
    assert gaussian_sigma2(shift * shift, rho) == sigma2
    for alpha in (1.01, 1.5, 2.0, 7.3):
        terms = [alpha * logs[k] + (1 - alpha) * logs[k - shift] for k in range(-140, 151)]
        moment = math.fsum(math.exp(term - max(terms)) for term in terms) / total
        divergence = (max(terms) + math.log(moment)) / (alpha - 1)
        assert divergence <= alpha * float(rho) + 1e-9
        assert divergence > 0.99 * alpha * float(rho) or sigma2 < 1


BUDGETS = [
    (Fraction(1), Fraction(1, 10**6)),
    (Fraction(1), Fraction(1, 10**9)),
    (Fraction(1, 10), Fraction(1, 10**5)),
    (Fraction(10), Fraction(1, 1000)),
    (Fraction(1, 10**6), Fraction(1, 10**6)),
    (Fraction(1000), Fraction(1, 10**6)),
    (Fraction(1, 100), Fraction(9, 10)),
]


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
def test_rho_is_the_largest_there_is(epsilon: Fraction, delta: Fraction) -> None:
    # given the conversion in floats, over all orders
    def rho(beta: float) -> float:
        logs = math.log(delta) + (1 + beta) * math.log1p(beta) - beta * math.log(beta)
        return (float(epsilon) + logs / beta) / (1 + beta)

    best = max(rho(math.exp(step / 100)) for step in range(-1500, 500 - int(100 * math.log(delta))))
    # then ours is as large, and larger than that of the simple conversion epsilon = rho + 2 sqrt(rho log(1 / delta))
    ours = float(largest_rho(epsilon, delta))
    assert best * (1 - 1e-9) <= ours <= best * (1 + 1e-4)
    assert ours > (math.sqrt(epsilon - math.log(delta)) - math.sqrt(-math.log(delta))) ** 2


@pytest.mark.long
@in_a_loop
@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS[:4])
def test_opendp_finds_no_more_than_was_claimed(epsilon: Fraction, delta: Fraction) -> None:
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    sigma2 = gaussian_sigma2(1, largest_rho(epsilon, delta))
    profile = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale=math.sqrt(sigma2))).map(1.0)
    assert profile.epsilon(delta=float(delta)) == pytest.approx(float(epsilon), rel=1e-3)


@given(
    st.fractions(Fraction(1, 10**9), 100),
    st.fractions(Fraction(1, 10**12), Fraction(99, 100)),
    st.decimals("1e-9", "1e9", places=9),
)
@examples(25)
def test_no_order_of_the_conversion_is_better_by_much(epsilon: Fraction, delta: Fraction, beta: Decimal) -> None:
    rho = largest_rho(epsilon, delta)
    other = rho_at(beta, *(Decimal(x.numerator) / x.denominator for x in (epsilon, delta)))
    assert Fraction(other) <= rho * (1 + Fraction(1, 10**12))


def test_rounding_is_to_the_safe_side() -> None:
    """Against the same formula with twice the digits."""
    for (epsilon, delta), beta in itertools.product(BUDGETS, map(Decimal, ("0.001", "0.7", "30", "1e9"))):
        with localcontext(Context(prec=300)):
            e, d = (Decimal(x.numerator) / x.denominator for x in (epsilon, delta))
            exact = (e + (d.ln() + (1 + beta) * (1 + beta).ln() - beta * beta.ln()) / beta) / (1 + beta)
            found = rho_at(beta, _FLOOR.plus(e), _FLOOR.plus(d))
            assert exact <= 0 or exact * (1 - Decimal("1e-130")) < found < exact


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="sigma2 must be greater than 0"):
        DiscreteGaussian(0, KEY)
    with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
        largest_rho(1, Fraction(1))
    with pytest.raises(ValueError, match="epsilon must be greater than 0"):
        largest_rho(0, Fraction(1, 2))
    with pytest.raises(ValueError, match="rho must be greater than 0"):
        gaussian_sigma2(1, Fraction(0))
