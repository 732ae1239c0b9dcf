"""Files of events, before they are run: what form they have, what can be used of them, and in which order they are."""
