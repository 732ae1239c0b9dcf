"""A module for each command, or for commands about one thing; `shoal.agents.cli.main` lists them."""
