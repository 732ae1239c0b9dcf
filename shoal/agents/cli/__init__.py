"""The command line: a module for each command, thin over the agents."""
