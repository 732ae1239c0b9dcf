"""A log that has something in every table, and all that a log has."""

from sqlalchemy import select

from shoal.agents.audit.ledger import Ledger
from shoal.models.tables import Table
from tests.agents.audit.audit_examples import APP, activation, amounts, register, release, version


def fill(ledger: Ledger) -> None:
    """Put something into every table."""
    register(ledger, version("basket", every="1h"), version("visits"), partitions={"purchases": 4})
    ledger.raise_budget(*amounts(8, 0))
    ledger.of(APP).restart_clock("purchases", "ann \0 \\")
    ledger.of(APP).append([release(1), release(2), release(1, "B\0E")], activations=[activation(0)])


def rows_of(ledger: Ledger) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables."""
    with ledger.database.read() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for table in Table.metadata.sorted_tables
        }
