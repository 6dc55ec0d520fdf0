"""Who decides and sends: one of all servers, by a row with an expiry, by the database's clock."""

from __future__ import annotations

import secrets
import time
from typing import Final

from sqlalchemy import Connection, Engine, select, text, update

from toolfault_collector.clock import SECOND_US
from toolfault_collector.storage.database.dialect import insert_ignore
from toolfault_collector.storage.database.engine import is_sqlite, write_transaction
from toolfault_collector.storage.tables import alert_lease

__all__ = ["LEASE_SECONDS", "Lease", "LeaseLost"]

LEASE_SECONDS: Final = 120.0
"""How long a server that stopped keeps others from sending; longer than any one message takes."""

_NAME: Final = "alerts"
_NOW: Final = {
    True: "SELECT CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)",
    False: "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint)",
}


class LeaseLost(Exception):  # noqa: N818 - reads as what happened
    """Another server has the lease: what was begun must not be written."""


class Lease:
    """The claim of one server to be the one that sends.

    Args:
        engine: The database of all of them.
        seconds: How long the claim holds without being renewed.
    """

    def __init__(self, engine: Engine, seconds: float = LEASE_SECONDS) -> None:
        self.holder = secrets.token_hex(16)
        self._engine = engine
        self._seconds = seconds
        self._renewed: float | None = None

    def hold(self) -> bool:
        """Say whether this server is the one; renew the claim when a third of it is over."""
        if self._renewed is not None and time.monotonic() - self._renewed < self._seconds / 3:
            return True
        try:
            with write_transaction(self._engine) as conn:
                self.renew(conn)
        except LeaseLost:
            return False
        return True

    def renew(self, conn: Connection) -> None:
        """Take or renew the lease in the transaction of *conn*, which fails without it.

        Raises:
            LeaseLost: Another server has it.
        """
        # Before the database looks at its own clock: so it is never believed for too long.
        began = time.monotonic()
        now = int(conn.execute(text(_NOW[is_sqlite(conn)])).scalar_one())
        lease, until = alert_lease.c, now + int(self._seconds * SECOND_US)
        row = {"holder": self.holder, "expires_at": until}
        mine = (lease.holder == self.holder) | (lease.expires_at <= now)
        conn.execute(update(alert_lease).where(lease.name == _NAME, mine).values(row))
        # The first server of all; another may do the same, and one of them finds it done.
        conn.execute(insert_ignore(conn, alert_lease).values(name=_NAME, **row))
        holder = conn.execute(select(lease.holder).where(lease.name == _NAME)).scalar_one()
        if holder != self.holder:
            self._renewed = None
            raise LeaseLost
        self._renewed = began

    def give_up(self) -> None:
        """Let another server go on at once."""
        if self._renewed is None:
            return
        self._renewed = None
        with write_transaction(self._engine) as conn:
            conn.execute(
                update(alert_lease).where(alert_lease.c.holder == self.holder).values(expires_at=0)
            )
