"""Copies of the audit log: written beside running workers, checked by themselves, restored into either database."""
