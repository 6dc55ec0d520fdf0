"""How many different names a project may have, so that no key can grow an index without end.

A name beyond the limit is stored as ``other``: the call is kept and counted, its own name is in
``extra``, and a flag says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sqlalchemy import Connection

from toolfault_collector.bulk import bind
from toolfault_collector.prepared import PreparedCall, sign

__all__ = ["OTHER", "NameLimits"]

OTHER: Final = "other"
# Shops with hundreds of tools exist, with thousands do not; codes are the contract's 19 and some.
MAX_TOOLS: Final = 2_000
MAX_CODES: Final = 500


class NameLimits:
    """The names each project has used, as far as this process knows.

    Args:
        max_tools: Different tools of one project.
        max_codes: Different codes of one project.
    """

    def __init__(self, *, max_tools: int = MAX_TOOLS, max_codes: int = MAX_CODES) -> None:
        self._limits = {"tool": max_tools, "code": max_codes}
        self._known: dict[tuple[int, str], set[str]] = {}

    def apply(self, conn: Connection, calls: Iterable[PreparedCall]) -> None:
        """Give *calls* whose tool or code is one too many the name ``other``."""
        for call in calls:
            tool, code = call.event.tool, call.code
            if not self._admit(conn, call.project_id, "tool", tool):
                call.extra["tool"] = tool
                call.flags.append("tool_limit")
                call.event.tool = OTHER
                sign(call)
            if code is not None and not self._admit(conn, call.project_id, "code", code):
                call.extra["code"] = code
                call.flags.append("code_limit")
                call.code = OTHER
                sign(call)

    def _admit(self, conn: Connection, project_id: int, kind: str, name: str) -> bool:
        known = self._known.get((project_id, kind))
        if known is None:
            known = self._known[project_id, kind] = self._load(conn, project_id, kind)
        if name in known or name == OTHER:
            return True
        if len(known) >= self._limits[kind]:
            return False
        known.add(name)
        return True

    def _load(self, conn: Connection, project_id: int, kind: str) -> set[str]:
        sql = 'SELECT DISTINCT name FROM failure_counts WHERE project_id = ? AND "by" = ? LIMIT ?'
        found = conn.exec_driver_sql(bind(conn, sql), (project_id, kind, self._limits[kind]))
        return set(found.scalars())
