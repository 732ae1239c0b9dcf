"""Folder of the user's cache for what checkouts on one machine share: kernel wheels, mypy's cache, durations."""

import os
from pathlib import Path


def cache() -> Path:
    """Folder of the shared cache, which may not exist yet."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shoal"
