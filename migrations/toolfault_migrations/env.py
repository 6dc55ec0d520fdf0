"""Run by alembic: offers the connection the command was given, and the names of constraints."""

from __future__ import annotations

from typing import Final

from alembic import context
from sqlalchemy import MetaData

# Whatever a revision leaves without a name is named like this.
NAMING: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=MetaData(naming_convention=NAMING),
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
