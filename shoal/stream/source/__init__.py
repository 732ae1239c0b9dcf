"""What one source partition does with its records."""
