"""The prices of a project: those that Settings stored, else those of the environment."""

from __future__ import annotations

from sqlalchemy import Connection

from toolfault_collector.project_settings import settings_of
from toolfault_dashboard.analysis.prices import Prices, configured_prices, parse_prices

__all__ = ["prices_of"]


def prices_of(conn: Connection, project_id: int) -> Prices:
    """Return what a million tokens of each model cost in this project."""
    stored = settings_of(conn, project_id).token_prices
    return configured_prices() if stored is None else parse_prices(stored)
