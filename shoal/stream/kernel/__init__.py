"""The kernel: the hot path of bound in Rust, where it is installed; the Python code is its twin and its specification.

A partition that goes by the kernel keeps its accounts and queues there. The kernel takes records of a plain form and
stops in front of any other, which the twin takes over the same accounts and queues. What leaves the partition is the
same, byte for byte, whichever took which record.
"""
