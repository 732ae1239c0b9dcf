"""Schema of the audit log, from the first table on; `shoal.agents.audit.database` runs the steps."""
