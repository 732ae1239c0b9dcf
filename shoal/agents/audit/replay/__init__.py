"""What `run.py` is made of: reading topics again, making releases again, comparing."""
