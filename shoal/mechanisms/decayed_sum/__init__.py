"""Sums, counts and means that may forget, released at every step."""
