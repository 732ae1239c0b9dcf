"""Yardsticks: counters of other papers, which no configuration can name, beside those that shoal publishes with.

They implement `Tree` and `Counter` of `shoal.mechanisms.counters.counter` and pass the same laws, exact privacy loss
included (tests/benchmarks/test_yardsticks.py, docs/proofs/counters.md). BLUE has less variance than any of them.
"""
