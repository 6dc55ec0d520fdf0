"""Which engines a test runs on where `database_url` is for both."""

from __future__ import annotations

import pytest

__all__ = ["HISTORY_ON_POSTGRESQL_IS_LONG", "POSTGRESQL_IS_LONG"]

POSTGRESQL_IS_LONG = pytest.mark.parametrize(
    "database_url",
    ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.long])],
    indirect=True,
)
"""SQLite in every run: another test shows what PostgreSQL does differently here."""

HISTORY_ON_POSTGRESQL_IS_LONG = pytest.mark.parametrize(
    "history_url",
    ["sqlite", pytest.param("postgresql", marks=[pytest.mark.postgres, pytest.mark.long])],
    indirect=True,
    scope="session",
)
"""The same for what only reads the generated history."""
