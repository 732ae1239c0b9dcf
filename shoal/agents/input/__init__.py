"""Files of events before they are run: their form, what can be used of them, and their order."""
