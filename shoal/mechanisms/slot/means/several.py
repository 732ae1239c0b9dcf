"""Means of several coordinates: one mechanism for all, with a share of epsilon for each and noise in common.

    value    a list: the mean of each coordinate, by the mechanism of one, with epsilon / d
    noise    one draw for all coordinates, by the norm of the largest, where each would have one: shares of epsilon that
             d coordinates spend on the same step are spent together (noise/cube.py)

Guarantee    pure epsilon-DP for all coordinates together
Relation     values: two cells differ in the values of one user, in any or all coordinates
Unit         all samples of a user in the cell
Choices      the mechanism, its cap, and who shares an array follow from public counts, once for all coordinates;
             private ones, of an interval or a spread, are made for each, with a d-th of what one alone would have
Noise        of a coordinate on average (d + 1) / (2 d) of what a Laplace draw for its share would have
Proof        docs/proofs/slots.md
"""

from collections.abc import Callable
from dataclasses import replace

from shoal.mechanisms.slot.cell import CellParameters, Counts, Draws, Prediction, Release, Users
from shoal.mechanisms.statistic import Estimate

MOST = 8  # coordinates: each has its share of epsilon


def jointly(choose: Callable[[Counts, CellParameters], Release]) -> Release:
    """The release of all coordinates, by a mechanism that public counts choose for one of them.

    It has lists with a number for each coordinate, and what they have in common once.
    """

    def release(users: Users, cell: CellParameters, draws: Draws) -> Estimate:
        release_of_one = choose([len(samples) for samples in users], of_one(cell))
        estimates = []
        for axis, own in enumerate(draws.each(len(cell.axes))):
            numbers = [[sample[axis] for sample in samples] for samples in users]
            estimates.append(release_of_one(numbers, replace(of_one(cell), grid=cell.axes[axis][0]), own))
        first = estimates[0]
        error = None if first.details["error"] is None else [one.details["error"] for one in estimates]
        return Estimate(
            [one.value for one in estimates],
            [one.noise_sd for one in estimates],
            [one.low for one in estimates],
            [one.high for one in estimates],
            first.counts,
            {**first.details, "error": error},
        )

    return release


def predicting(predict: Prediction) -> Prediction:
    """The likely error of the coordinate whose grid the cell has, in units of its range."""
    return lambda counts, cell: predict(counts, of_one(cell))


def of_one(cell: CellParameters) -> CellParameters:
    """The parameters of one coordinate, with its share of epsilon and the cell's grid; sigma is for few users alone."""
    d = len(cell.axes)
    return replace(cell, epsilon=cell.epsilon / d, sigma=None, axes=(), coordinates=d)


def always(release: Release) -> Callable[[Counts, CellParameters], Release]:
    """The choice of this one mechanism."""
    return lambda counts, cell: release
