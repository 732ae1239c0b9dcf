"""Bound's changelog: a log of the accounts that changed, in which all others are also written again, round and round.

Each transaction writes the accounts that changed since the one before, and about as many bytes of other accounts, the
next ones in order. When all have been written again, a round is over. So whoever restores the accounts needs no more of
the log than the last round, about twice what the accounts hold, and older records are deleted. `record.py` has the
format, `rolling.py` chooses what is written again, `writing.py` writes, `restoring.py` reads.
"""
