"""Decayed sums: every mechanism against its formula, by measured noise, speed and size of its state."""
