"""HTTP servers of a worker and of the dashboard: names that are answered, limits on connections, and shared answers."""
