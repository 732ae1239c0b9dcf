"""What a worker costs while it is not behind, and how late its releases are (`make bench-live`)."""
