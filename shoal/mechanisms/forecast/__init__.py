"""Forecasts of releases, and the plans made of them: real accounts and real noise over a workload of whole numbers."""
