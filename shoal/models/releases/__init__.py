"""The reader of releases and activations, and their numbers with the digits that people are shown."""
