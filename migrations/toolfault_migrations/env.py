"""Run by alembic: offers the connection the command was given, and the names of constraints."""

from __future__ import annotations

from alembic import context
from sqlalchemy import MetaData

from toolfault_migrations import NAMING

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=MetaData(naming_convention=NAMING),
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
