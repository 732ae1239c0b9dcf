"""Statistics under relation add-remove: two counters for each key, of which one takes what the other leaves."""
