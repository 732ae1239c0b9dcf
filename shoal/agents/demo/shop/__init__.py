"""The demo of the shop; see `scene`."""
