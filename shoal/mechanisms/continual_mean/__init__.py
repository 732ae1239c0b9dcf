"""The continual mean: of all values so far, released at every tick or with every contribution."""

from shoal.mechanisms.parts.by import Full, MultiTree, Naive, Sharp, SingleTree, Wishful

MEANS = (Sharp, Naive, Wishful, SingleTree, MultiTree, Full)  # its algorithms
WITH_PRIOR = (Wishful, SingleTree, MultiTree)  # they need one; the others make their own, or none
ON_BLOCKS = (*WITH_PRIOR, Full)
WITH_SIGMA = (*ON_BLOCKS, Sharp)  # sharp of one value
WITH_DELTA = (Sharp, Naive)  # their counters may have Gaussian noise; the others split epsilon over levels
OF_EVENTS = (Sharp, Naive)  # they know whose a sample is by its block alone, and with one sample there are none
