"""Schema of the audit log, from the first table on; `shoal.agents.database` runs the steps."""
