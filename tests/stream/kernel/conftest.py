"""Tests of the kernel are collected where it is installed, which `make test` sees to wherever there is Rust."""

from tests.support.backends import HAS_KERNEL

collect_ignore_glob = [] if HAS_KERNEL else ["test_*.py"]
