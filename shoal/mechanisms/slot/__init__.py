"""Statistics of places and slots: every cell of a time slot, released once, when the slot is over."""
