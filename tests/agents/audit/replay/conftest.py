"""Tests of the kernel's lane are collected where the kernel is installed."""

from tests.support.backends import HAS_KERNEL

collect_ignore = [] if HAS_KERNEL else ["test_kernel_lane.py"]
