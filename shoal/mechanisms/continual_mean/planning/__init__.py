"""What to expect of a continual mean: forecasts from a stated workload or the events of a file, and comparisons."""
