"""A log that has something in every table, and all that a log has."""

from pathlib import Path

from sqlalchemy import select

from shoal.agents.audit.copies.copy import write_copy
from shoal.agents.audit.ledger import Ledger
from shoal.models.tables import Table
from tests.agents.audit.audit_examples import APP, activation, amounts, register, release, version


def fill(ledger: Ledger) -> None:
    """Put something into every table."""
    register(ledger, version("basket", every="1h"), version("visits"), partitions={"purchases": 4})
    ledger.raise_budget(*amounts(8, 0))
    ledger.of(APP).restart_clock("purchases", "ann \0 \\")
    ledger.of(APP).append([release(1), release(2), release(1, "B\0E")], activations=[activation(0)])


def copied(folder: Path) -> Path:
    """Fill an audit log in `folder`, and return a copy of it, copy.db."""
    with Ledger.open(f"sqlite:///{folder / 'copied.db'}") as log:
        fill(log)
        write_copy(log, folder / "copy.db")
    return folder / "copy.db"


def rows_of(ledger: Ledger) -> dict[str, list[tuple[object, ...]]]:
    """Rows of each table of an audit log, sorted, by the table's name."""
    with ledger.database.read() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr)
            for table in Table.metadata.sorted_tables
        }
