"""The mathematics: private statistics as pure objects, without I/O, clock or transport; README.md has the notation."""
