"""The schema's history: alembic revisions that run on SQLite and PostgreSQL.

The configuration is built in code, so migrations run from any directory and from the installed
wheel alike. Nothing of the other rooms is imported: a revision must still run when the tables of
today look different.

alembic is loaded when something is migrated: a server whose database has the schema of today starts
without it, and asks for its readiness without reading every revision again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Engine, MetaData, inspect, text

if TYPE_CHECKING:
    from alembic.config import Config

__all__ = [
    "HEAD",
    "NAMING",
    "UNRELEASED",
    "alembic_config",
    "check",
    "current",
    "downgrade",
    "here",
    "knows",
    "print_upgrade",
    "upgrade",
]

# The newest revision, here too so that alembic is not asked for it at each start.
HEAD: Final = "0001_first_schema"
# Schemas from before the first release: no revision leads from them to one of today.
UNRELEASED: Final = frozenset(f"{number:04}" for number in range(1, 14))

# What a table or revision leaves without a name is named like this.
NAMING: Final = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

# Any number will do as long as every process that migrates takes the same lock.
_LOCK: Final = 7_061_746_661
_REVISION: Final = text("SELECT version_num FROM alembic_version")
# Writers read the first of these before anything else, readers lock the second.
_READ_FIRST: Final = ("alembic_version", "tool_call")


def alembic_config(connection: Connection | None = None) -> Config:
    """Return the alembic configuration; *connection* is what commands run on."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", Path(__file__).parent.as_posix())
    config.attributes["connection"] = connection
    return config


def current(engine: Engine, *, patience_ms: int = 0) -> str | None:
    """Return the revision of the database, or None if it has no schema yet.

    Args:
        engine: The database.
        patience_ms: How long to wait for a migration to end (PostgreSQL); 0 waits until it has.

    Raises:
        sqlalchemy.exc.OperationalError: It has not ended.
    """
    with engine.connect() as connection:
        if patience_ms and engine.dialect.name == "postgresql":
            connection.execute(text(f"SET LOCAL lock_timeout = {patience_ms:d}"))
        if not inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(_REVISION).scalar()


def here(connection: Connection) -> str | None:
    """Return the revision of a database that has one, inside the transaction of *connection*.

    On PostgreSQL no migration begins until that transaction has ended, and one that runs is
    waited for.
    """
    # Without SQLAlchemy's compiler: every write transaction begins with this.
    found = connection.exec_driver_sql(_REVISION.text).one_or_none()
    return None if found is None else str(found[0])


def knows(revision: str) -> bool:
    """Return whether this version has a migration named *revision*."""
    from alembic.script import ScriptDirectory

    known = ScriptDirectory.from_config(alembic_config()).walk_revisions()
    return any(each.revision == revision for each in known)


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring the database up to *revision* in one transaction: all of it or nothing."""
    from alembic import command

    with _migrating(engine) as connection:
        command.upgrade(alembic_config(connection), revision)


def print_upgrade(engine: Engine) -> None:
    """Write the SQL that `upgrade` would run to standard output; the database stays as it is."""
    from alembic import command

    with engine.connect() as connection:
        config = alembic_config(connection)
        command.upgrade(config, f"{current(engine) or 'base'}:head", sql=True)


def downgrade(engine: Engine, revision: str) -> None:
    """Take the database down to *revision* in one transaction (``base`` drops everything)."""
    from alembic import command

    with _migrating(engine) as connection:
        command.downgrade(alembic_config(connection), revision)


def check(engine: Engine, metadata: MetaData, *, beside: Collection[str] = ()) -> list[str]:
    """Return what differs between *metadata* and the database, one line each; empty if nothing.

    A table, constraint or index whose ``info`` has ``only`` is for the engine of that name alone.
    Of partitions it is compared how their table is divided, not each one: PostgreSQL attaches only
    what has the columns, constraints and indexes of the whole, and all rows come through that.

    Args:
        engine: The database.
        metadata: What is expected.
        beside: Names of tables that may be there, too.
    """
    from alembic.autogenerate import compare_metadata
    from alembic.runtime.migration import MigrationContext

    def expected(found: Any, _name: object, kind: str, _reflected: bool, _other: object) -> bool:
        wanted = found.elements if kind == "foreign_key_constraint" else [found]
        here = engine.dialect.name
        return all(each.info.get("only", here) == here for each in wanted)

    with engine.connect() as connection:
        parts, divided = _partitions(connection)

        def whole(name: str | None, kind: str, _parents: object) -> bool:
            return kind != "table" or (name not in parts and name not in beside)

        opts = {
            "compare_type": _same_type,
            "compare_server_default": True,
            "include_object": expected,
            "include_name": whole,
        }
        context = MigrationContext.configure(connection, opts=opts)
        differences = [_describe(each) for each in compare_metadata(context, metadata)]
    if engine.dialect.name == "postgresql":
        for each in metadata.sorted_tables:
            by = each.dialect_options["postgresql"]["partition_by"]
            if divided.get(each.name) != by:
                differences.append(f"{each.name} is not divided by {by} with a default partition")
    return differences


def _partitions(connection: Connection) -> tuple[set[str], dict[str, str]]:
    """Return the names of all partitions, and how tables that have a default one are divided."""
    if connection.dialect.name != "postgresql":
        return set(), {}
    parts = "SELECT relname FROM pg_class WHERE relispartition AND relkind = 'r'"
    divided = (
        "SELECT partrelid::regclass::text, pg_get_partkeydef(partrelid) FROM pg_partitioned_table"
        " WHERE partdefid <> 0"
    )
    return (
        set(connection.execute(text(parts)).scalars()),
        {row[0]: row[1] for row in connection.execute(text(divided))},
    )


@contextmanager
def _migrating(engine: Engine) -> Iterator[Connection]:
    """Yield a connection in a transaction under which schema changes are safe.

    SQLite rebuilds a table by copying and dropping it; with foreign keys enforced, the drop would
    delete every child row (ON DELETE CASCADE), and silently. The pragma has no effect inside a
    transaction, so it is switched before one begins.

    On PostgreSQL whoever is writing or reading comes to an end first, and others wait: nobody
    stores by the rules of one schema what another will find, and nobody waits in a circle.
    """
    sqlite = engine.dialect.name == "sqlite"
    options = {"toolfault_write": True, "toolfault_any_schema": True}
    with engine.connect().execution_options(**options) as connection:
        if sqlite:
            _pragma(connection, "foreign_keys=OFF")
        try:
            with connection.begin():
                if not sqlite:
                    connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
                    _wait_for_others(connection)
                yield connection
                if sqlite:
                    _refuse_orphans(connection)
        finally:
            if sqlite:
                _pragma(connection, "foreign_keys=ON")


def _wait_for_others(connection: Connection) -> None:
    tables = inspect(connection)
    for name in _READ_FIRST:
        if tables.has_table(name):
            connection.execute(text(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE"))


def _pragma(connection: Connection, pragma: str) -> None:
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.execute(f"PRAGMA {pragma}")


def _refuse_orphans(connection: Connection) -> None:
    orphan = connection.execute(text("PRAGMA foreign_key_check")).first()
    if orphan is not None:
        message = f"the migration would leave rows of {orphan[0]} without their parent; undone"
        raise RuntimeError(message)


def _same_type(
    _context: object, _inspected: object, _column: object, found: Any, wanted: Any
) -> bool | None:
    """Say that SQLite's INTEGER is our BIGINT: its integers are 64 bits wide."""
    if found.__class__.__name__ == "INTEGER" and wanted.__class__.__name__ == "BigInteger":
        return False
    return None


def _describe(difference: Any) -> str:
    if isinstance(difference, list):
        return "; ".join(_describe(part) for part in difference)
    action, *subjects = difference
    return f"{action} {' '.join(str(subject) for subject in subjects if subject is not None)}"
