"""How close each algorithm comes to the true mean, beside what else one might use, on the same inputs in one run."""
