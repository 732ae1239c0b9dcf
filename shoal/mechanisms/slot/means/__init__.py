"""Algorithms for the mean of a cell."""
