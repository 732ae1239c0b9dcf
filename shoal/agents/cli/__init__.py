"""The command line, thin over the agents: a module for each command, or for commands about one thing."""
