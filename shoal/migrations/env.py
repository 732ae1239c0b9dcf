"""Alembic runs this module to migrate: always on the connection, and in the transaction, that its caller opened."""

from alembic import context

from shoal.models.tables import Table

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Table.metadata,
    render_as_batch=True,  # SQLite alters a table by copying it
)
with context.begin_transaction():
    context.run_migrations()
