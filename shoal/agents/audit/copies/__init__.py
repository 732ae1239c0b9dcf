"""Copies of the audit log: written beside running workers, checked without the log, restored into either database."""
