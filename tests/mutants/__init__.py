"""Seeded mutants: single wrong lines in the mathematics of privacy, each of which some test must catch.

`python -m tests.mutants` (`make mutants`) breaks a copy of the package, one mutant at a time, runs the tests that must
notice, and prints who noticed what. The checkout is never edited. A mutant whose text no longer occurs is an error.
Mutants are tables in the TOML files of this folder; `tables.py` has their form. One family, `golden`, breaks no
guarantee but the promise that bytes stay what they are.
"""
