"""Tests of the kernel's lane are collected where the kernel is installed."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("shoal_kernel") else ["test_kernel_lane.py"]
