"""What the stores of accounts share."""
