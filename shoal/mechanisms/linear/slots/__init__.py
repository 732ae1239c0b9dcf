"""Statistics per slot under relation add-remove: two counters for each cell of each slot, which is released once."""
