"""Tests of the kernel are collected where it is installed, which `make test` sees to wherever there is Rust."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("shoal_kernel") else ["test_*.py"]
