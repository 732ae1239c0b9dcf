"""The variance of samples that may be forgotten, released at every step."""
