"""Proposes a configuration from the names and forms of a sample, and from what its owner says; never from a value."""
