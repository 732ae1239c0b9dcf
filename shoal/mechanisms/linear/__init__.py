"""Statistics that are sums of samples: of values under relation values, and of samples that are hidden altogether."""
