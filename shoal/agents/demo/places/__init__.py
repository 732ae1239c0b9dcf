"""The demo of places; see `scene`."""
