"""The prices of a project: those that Settings stored, else those of the environment."""

from __future__ import annotations

from sqlalchemy import Connection

from toolfault_dashboard.analysis.prices import Prices, configured_prices, parse_prices
from toolfault_dashboard.queries.projects import token_prices

__all__ = ["prices_of"]


def prices_of(conn: Connection, project_id: int) -> Prices:
    """Return what a million tokens of each model cost in this project."""
    stored = token_prices(conn, project_id)
    return configured_prices() if stored is None else parse_prices(stored)
