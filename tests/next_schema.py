"""The revision after the newest: what every database becomes to this version with the next one.

It rebuilds the parents of other tables, which is how SQLite changes a table.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from alembic.config import Config
from sqlalchemy import Connection

import toolfault_migrations as migrations

__all__ = ["NEXT", "add_next_schema"]

NEXT: Final = "9001_next_schema"
_SOURCE: Final = f"""
import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{migrations.HEAD}"


TABLES = ("project", "tool_call")

def batch(name):
    sqlite = op.get_context().dialect.name == "sqlite"
    return op.batch_alter_table(name, recreate="always" if sqlite else "never")

def upgrade():
    for name in TABLES:
        with batch(name) as table:
            table.add_column(sa.Column("added", sa.Integer))
    op.execute("UPDATE tool_call SET added = 1")

def downgrade():
    for name in TABLES:
        with batch(name) as table:
            table.drop_column("added")
"""


def add_next_schema(folder: Path, put: Callable[[object, str, object], None] = setattr) -> None:
    """Let this process know a revision more, which its databases then lack.

    Args:
        folder: Where the revision is written.
        put: ``monkeypatch.setattr``, or what else sets an attribute for as long as it should.
    """
    (folder / "next_schema.py").write_text(_SOURCE, encoding="utf-8")
    own = Path(migrations.__file__).parent / "versions"
    configure = migrations.alembic_config

    def with_next(connection: Connection | None = None) -> Config:
        config = configure(connection)
        config.set_main_option("path_separator", "os")
        config.set_main_option("version_locations", f"{own}{os.pathsep}{folder}")
        return config

    put(migrations, "alembic_config", with_next)
    put(migrations, "HEAD", NEXT)
