"""Histograms: noisy trees over their bins, and what is told of them."""
