"""What reads by the kernel is collected where it is installed, as in tests/stream/kernel."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("shoal_kernel") else ["test_record_batches.py"]
