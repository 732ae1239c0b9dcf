"""The parts of `run.py`: they read topics, recompute contributions and releases, and compare."""
