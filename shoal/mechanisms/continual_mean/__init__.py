"""The continual mean: of all values so far, released at every tick or with every contribution."""

MEANS = ("sharp", "naive", "wishful", "single-tree", "multi-tree", "full")  # its algorithms
WITH_PRIOR = ("wishful", "single-tree", "multi-tree")  # they need one; the others make their own, or none
ON_BLOCKS = (*WITH_PRIOR, "full")
WITH_SIGMA = (*ON_BLOCKS, "sharp")  # sharp of one value
WITH_DELTA = ("sharp", "naive")  # their counters may have Gaussian noise; the others split epsilon over levels
OF_EVENTS = ("sharp", "naive")  # they know whose a sample is by its block alone, and with one sample there are none
