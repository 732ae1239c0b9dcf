"""What needs the kernel is collected where it is installed, which `make test` sees to wherever there is Rust."""

from tests.support.backends import HAS_KERNEL

collect_ignore = [] if HAS_KERNEL else ["test_record_batches.py"]
