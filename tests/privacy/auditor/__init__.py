"""The privacy auditor: the largest privacy loss that random configurations reach, from what they publish alone.

A configuration and a stream are drawn at random, and worlds that differ in the values of one unit. Every draw of noise
is an unknown (`unknowns.py`), every private choice is forced to one outcome (`choices.py`), and the stream goes through
the code that publishes (`worlds.py`). What is published is then a linear function of the unknowns, whose coefficients
are found by setting one after the other. The least noise that turns one world's releases into another's, by linear
programming (`program.py`), and the odds of the forced choices bound the privacy loss between the two (`audit.py`). It
must be at most epsilon for every pair, and is epsilon exactly where noise is no larger than it must be. All else that
is seen must be the same.

`python -m tests.privacy.auditor` runs many (`make audit-privacy`), the tests a few of each family (`families/`).
"""
