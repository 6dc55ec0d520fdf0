"""What every table is made of: one metadata, and the usual columns."""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, MetaData

from toolfault_migrations import NAMING

__all__ = ["POSTGRESQL_ONLY", "SQLITE_ONLY", "id_column", "metadata", "project_column"]

# Of foreign keys that PostgreSQL has not: a check per row costs there what writing the row does.
# And of what a table with partitions cannot have, or has instead.
SQLITE_ONLY: Final = {"only": "sqlite"}
POSTGRESQL_ONLY: Final = {"only": "postgresql"}

metadata: Final = MetaData(naming_convention=NAMING)


def id_column() -> Column[int]:
    """Return a key that counts up."""
    return Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True)


def project_column(**info: str) -> Column[int]:
    """Return the project that a row belongs to; *info* is of its foreign key."""
    return Column("project_id", Integer, ForeignKey("project.id", info=info), nullable=False)
