"""Plans of statistics that are sums of samples."""
