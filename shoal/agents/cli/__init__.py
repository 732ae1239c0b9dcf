"""The command line, thin over the agents: a table of commands, and how each of them prints and ends."""
