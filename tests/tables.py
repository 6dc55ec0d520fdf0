"""The tables of a database: not every engine has all of them."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, Table

from toolfault_collector.storage.tables import metadata

__all__ = ["tables_of"]


def tables_of(target: Engine | Connection) -> list[Table]:
    """Return the tables that *target* has, parents before their children."""
    here = target.dialect.name
    return [each for each in metadata.sorted_tables if each.info.get("only", here) == here]
