"""shoal: live statistics about people, with user-level differential privacy under continual release."""

__version__ = "0.1.0"
