"""`shoal migrate`: the schema of the audit log."""

from shoal.agents.audit.ledger import Ledger
from shoal.agents.cli.output import AsJson, ConfigPath, result
from shoal.models.config.file import load


def migrate(config: ConfigPath, as_json: AsJson = False) -> None:
    """Bring the SQL schema of the audit log to the state this version needs.

    Safe to repeat, and with several at once. PostgreSQL needs it before any other command; SQLite does not.

    Example: shoal migrate shoal.toml
    """
    with Ledger.open(load(config).audit.url, migrate=True) as ledger:
        fields = {"log": ledger.log_id, "database": ledger.database.url.get_backend_name()}
        result(fields, as_json=as_json, text=lambda: f"audit log {ledger.log_id}: schema up to date")
