"""Mutants of discrete Gaussian noise, of what (epsilon, delta) may cost, and of values with several coordinates."""

from tests.mutants.mutant import Mutant

GAUSSIAN = "mechanisms/noise/test_gaussian.py::"
ROOT = "mechanisms/counters/test_square_root.py::"
COORDINATES = "mechanisms/continual_mean/test_coordinates.py::"

NOISE = (
    Mutant(
        name="sigma too small for rho",
        family="samplers",
        file="mechanisms/privacy/zcdp.py",
        old="return squared_sensitivity / (2 * Fraction(rho))",
        new="return squared_sensitivity / (4 * Fraction(rho))",
        breach="twice the rho claimed",
        tests=(GAUSSIAN + "test_the_exact_cost_of_a_shift[1-sigma20]",),
        quick=True,
    ),
    Mutant(
        name="proposals kept too seldom",
        family="samplers",
        file="mechanisms/noise/gaussian.py",
        old="denominator = 2 * p * q << 2 * self._log",
        new="denominator = p * q << 2 * self._log",
        breach="the tails are too thin: noise of a smaller sigma",
        tests=(GAUSSIAN + "test_it_fits_its_sigma_and_no_other",),
    ),
    Mutant(
        name="proposals around zero",
        family="samplers",
        file="mechanisms/noise/gaussian.py",
        old="((abs(proposal) * q << self._log) - p) ** 2",
        new="(abs(proposal) * q << self._log) ** 2",
        breach="the law is not Gaussian but Gaussian times Laplace",
        tests=(GAUSSIAN + "test_it_fits_its_sigma_and_no_other",),
    ),
    Mutant(
        name="exponents without slack",
        family="samplers",
        file="mechanisms/noise/gaussian.py",
        old="np.maximum(distance - 1, 0).astype(np.uint64), (distance + 1).astype(np.uint64)",
        new="distance.astype(np.uint64), distance.astype(np.uint64)",
        breach="what is rounded decides: a block's draws are not those that are drawn one by one",
        tests=(GAUSSIAN + "test_bounds_on_exponents_hold",),
    ),
    Mutant(
        name="rho rounded up",
        family="samplers",
        file="mechanisms/privacy/zcdp.py",
        old="return _FLOOR.divide(_FLOOR.add(epsilon, _FLOOR.divide(excess, beta)), most)",
        new="return _CEILING.divide(_CEILING.add(epsilon, _CEILING.divide(excess, beta)), least).next_plus(_CEILING)",
        breach="a rho that is a little more than (epsilon, delta) allow",
        tests=(GAUSSIAN + "test_rounding_is_to_the_safe_side",),
    ),
    Mutant(
        name="rho of twice the epsilon",
        family="samplers",
        file="mechanisms/privacy/zcdp.py",
        old="_FLOOR.add(epsilon, _FLOOR.divide(excess, beta))",
        new="_FLOOR.add(2 * epsilon, _FLOOR.divide(excess, beta))",
        breach="more rho than (epsilon, delta) allow",
        tests=(GAUSSIAN + "test_rho_is_the_largest_there_is[epsilon0-delta0]",),
    ),
)

ROOTS = (
    Mutant(
        name="width not squared",
        family="counters",
        file="mechanisms/counters/square_root.py",
        old="return self.width**2 * self.root.squared_column",
        new="return self.width * self.root.squared_column",
        breach="the noise is made for units that move by the root of their width",
        tests=(ROOT + "test_sensitivity_of_a_unit_past_the_capacity[3]",),
        quick=True,
    ),
    Mutant(
        name="columns longer than the first",
        family="counters",
        file="mechanisms/counters/square_root_coefficients.py",
        old="yield math.isqrt((self._squares << 2 * WEIGHT_BITS) // left)",
        new="yield 1 + math.isqrt((self._squares << 2 * WEIGHT_BITS) // left)",
        breach="later elements move more than the noise is made for",
        tests=(ROOT + "test_columns_are_no_longer_than_the_first",),
    ),
    Mutant(
        name="epochs of the root share noise",
        family="counters",
        file="mechanisms/counters/square_root.py",
        old="RootPrefixes(self.tree, self.subkey(epoch))",
        new="RootPrefixes(self.tree, self.subkey(0))",
        breach="a full matrix and the next have the same draws",
        tests=(ROOT + "test_epochs_add_up_and_share_no_draw",),
    ),
    Mutant(
        name="elements in floats",
        family="counters",
        file="mechanisms/counters/square_root.py",
        old="element = rounded(z - before, root.values[0] * weight)",
        new="element = rounded(int(float(z - before)), root.values[0] * weight)",
        breach="r(z + R d) is not r(z) + A d: a release is no function of what the noise was paid for",
        tests=("mechanisms/test_breaches.py::test_elements_of_the_root_are_rounded_exactly",),
    ),
    Mutant(
        name="Gaussian of another sigma",
        family="counters",
        file="mechanisms/counters/square_root.py",
        old="noise = DiscreteGaussian(tree.sigma2, subkey)",
        new="noise = DiscreteGaussian(tree.sigma2 / 2, subkey)",
        breach="twice the rho claimed",
        tests=(ROOT + "test_the_draws_have_the_stated_sigma[True]",),
    ),
)

SEVERAL = (
    Mutant(
        name="coordinates share noise",
        family="coordinates",
        file="mechanisms/continual_mean/coordinates.py",
        old="part.releaser(key, group, index)",
        new="part.releaser(key, group, 0)",
        breach="the difference of two coordinates is exact",
        tests=(COORDINATES + "test_the_budget_is_split_exactly_and_each_coordinate_has_noise_of_its_own[naive]",),
        quick=True,
    ),
    Mutant(
        name="coordinates not divided",
        family="coordinates",
        file="mechanisms/continual_mean/statistic.py",
        old="epsilon=spec.epsilon / len(spec.values)",
        new="epsilon=spec.epsilon",
        breach="a user who has d coordinates loses d times epsilon",
        tests=("stream/test_coordinates.py::test_the_mechanism_is_one_mean_for_each_coordinate",),
        quick=True,
    ),
    Mutant(
        name="lanes carry",
        family="coordinates",
        file="mechanisms/continual_mean/coordinates.py",
        old="if samples * self.largest >= LIMIT:",
        new="if samples < 0:",
        breach="one coordinate's sum spills into the next, by more than its width",
        tests=(COORDINATES + "test_lanes_do_not_carry_up_to_the_largest_sum_and_more_is_refused",),
    ),
)

MUTANTS = (*NOISE, *ROOTS, *SEVERAL)
