"""What needs the kernel is collected where it is installed, which `make test` sees to wherever there is Rust."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("shoal_kernel") else ["test_record_batches.py"]
