"""The worst expected error of a cell: what left out samples can make of it, and the size of its noise. All public.

Of M samples S are kept, at most g of a user. With U the width of the range, over all values of all samples and exactly,

    mean      |all - kept| <= U (1 - S / M)           one user moves it by U g / S
    variance  |all - kept| <= U**2 S (M - S) / M**2   where M > 2 (M - S), else U**2 floor(M**2 / 4) / M**2
              one user moves it by U**2 g (S - g) / S**2 where S > 2 g, else by U**2 floor(S**2 / 4) / S**2

and noise of scale b has an expected size of b at most. Variances are the samples' own: mean squares around their mean.

Proof   docs/proofs/slots.md
Source  Rameshwar and Tandon (2024), with the cases of the bias of the variance corrected
"""

from fractions import Fraction


def mean_error(kept: int, most: int, samples: int, epsilon: Fraction) -> Fraction:
    """E of a mean alone, in parts of the range: `kept` of `samples` samples, at most `most` of one user.

    >>> mean_error(kept=6, most=2, samples=8, epsilon=Fraction(1))
    Fraction(7, 12)
    """
    return Fraction(_mean(kept, most, samples, epsilon), epsilon.numerator * kept * samples)


def variance_error(kept: int, most: int, samples: int, epsilon: Fraction) -> Fraction:
    """E of a variance alone, in parts of the squared range.

    >>> variance_error(kept=1, most=1, samples=6, epsilon=Fraction(1))  # one sample has the variance 0, six up to 1/4
    Fraction(1, 4)
    """
    return Fraction(_variance(kept, most, samples, epsilon), epsilon.numerator * (kept * samples) ** 2)


def mean_and_variance_error(kept: int, most: int, samples: int, epsilon: Fraction, width: Fraction) -> Fraction:
    """E of mean and variance jointly, half of epsilon each: their sum, in units of the range and in their squares.

    >>> mean_and_variance_error(kept=8, most=2, samples=8, epsilon=Fraction(2), width=Fraction(1))
    Fraction(7, 16)
    """
    half, pairs = epsilon / 2, kept * samples
    u, v = width.as_integer_ratio()
    mean, variance = _mean(kept, most, samples, half), _variance(kept, most, samples, half)
    return Fraction(u * v * pairs * mean + u * u * variance, half.numerator * (v * pairs) ** 2)


def _mean(kept: int, most: int, samples: int, epsilon: Fraction) -> int:
    """E of a mean times the numerator of epsilon, `kept` and `samples`."""
    return epsilon.numerator * kept * (samples - kept) + epsilon.denominator * most * samples


def _variance(kept: int, most: int, samples: int, epsilon: Fraction) -> int:
    """E of a variance times the numerator of epsilon and the squares of `kept` and `samples`."""
    bias, noise = variance_bias(kept, samples), variance_sensitivity(kept, most)
    return epsilon.numerator * bias * kept**2 + epsilon.denominator * noise * samples**2


def variance_bias(kept: int, samples: int) -> int:
    """samples**2 times what leaving samples out can do to a variance, in parts of the squared range.

    >>> variance_bias(5, 6), variance_bias(3, 6), variance_bias(1, 5), variance_bias(6, 6)
    (5, 9, 6, 0)
    """
    return _farthest(samples, samples - kept)


def variance_sensitivity(kept: int, most: int) -> int:
    """kept**2 times what a user with `most` samples can do to a variance, in parts of the squared range.

    >>> variance_sensitivity(5, 1), variance_sensitivity(6, 3), variance_sensitivity(5, 5)
    (4, 9, 6)
    """
    return _farthest(kept, most)


def _farthest(samples: int, free: int) -> int:
    """The largest k (n - k) with k of n samples at one end of the range, the others at the other, and k <= `free`."""
    ends = min(free, samples // 2)
    return ends * (samples - ends)
