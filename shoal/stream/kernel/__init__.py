"""The kernel: bound's hot path in Rust, used where it is installed. The Python code is its specification, and its twin.

A partition that uses the kernel keeps its accounts and queues there. The kernel reads records in plain form and stops
at any other; the twin reads that one, and changes the same accounts and queues. The partition sends the same bytes,
whichever of the two read which record.
"""
