"""Release's changelog: a table of which compaction keeps the last value of each key, counted and held against a digest.

`inventory.py` counts it, `seals.py` says of one record whether it is what was written.
"""
