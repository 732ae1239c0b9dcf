"""Bound's changelog: a log of what changed, with all that accounts hold written again by and by.

Each transaction writes what changed since the one before (`record.py`), and of everything else the next part in order,
of about as many bytes (`rolling.py`). So a successor needs the log from one round back, about twice what the accounts
hold, and what is before it is deleted. `restoring.py` reads it.
"""
