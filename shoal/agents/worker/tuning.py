"""Process settings for speed."""

import gc


def tune_garbage_collector() -> None:
    """Look for cycles rarely: large dicts of accounts make every full collection slow, and hold no cycles."""
    gc.set_threshold(100_000, 50, 1000)
