"""How many different names a project may have, so that no key can grow an index without end.

A name beyond the limit is stored as ``other``: the call is kept and counted, its own name is in
``extra`` (that of an argument stays in the issue's ``field``), and a flag says so. Counts of folded
successes have the flag alone. Each renamed event is counted in ``toolfault_names_over_limit``, the
log says once that a limit was reached, and the doctor says how many calls are ``other``.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import structlog
from sqlalchemy import Connection, select

from toolfault_collector.prepared import PreparedCall, PreparedCounts, sign
from toolfault_collector.tables import failure_counts

__all__ = ["OTHER", "NameLimits"]

OTHER: Final = "other"
# Shops with hundreds of tools exist, with thousands do not; codes are the contract's 19 and some;
# a tool has some ten arguments, and further ones are made up by a model.
MAX_TOOLS: Final = 2_000
MAX_CODES: Final = 500
MAX_ARGUMENTS: Final = 10_000

_PATTERN: Final = 2  # of the field, in a prepared issue
_ROOT: Final = 3
_CODE: Final = 4

_COUNTED: Final = failure_counts.c
_STORED: Final = {
    "tool": select(_COUNTED.name).where(_COUNTED.by.in_(("tool", "folded"))),
    "code": select(_COUNTED.name).where(_COUNTED.by == "code"),
    "argument": select(_COUNTED.tool, _COUNTED.name).where(
        _COUNTED.by == "field", _COUNTED.name != ""
    ),
}

_log = structlog.get_logger(__name__)


class NameLimits:
    """The names each project has used, as far as this process knows.

    Args:
        max_tools: Different tools of one project.
        max_codes: Different codes of one project.
        max_arguments: Different arguments of the tools of one project.
    """

    def __init__(
        self,
        *,
        max_tools: int = MAX_TOOLS,
        max_codes: int = MAX_CODES,
        max_arguments: int = MAX_ARGUMENTS,
    ) -> None:
        self._limits = {"tool": max_tools, "code": max_codes, "argument": max_arguments}
        self._known: dict[tuple[int, str], set[tuple[str, ...]]] = {}
        self._told: set[tuple[int, str]] = set()
        self._renamed: Counter[str] = Counter()
        self._lock = threading.Lock()

    def apply(
        self,
        conn: Connection,
        calls: Iterable[PreparedCall],
        counts: Iterable[PreparedCounts] = (),
    ) -> None:
        """Give names that are one too many in *calls* and *counts* the name ``other``."""
        with self._lock:
            self._apply(conn, calls, counts)

    def _apply(
        self, conn: Connection, calls: Iterable[PreparedCall], counts: Iterable[PreparedCounts]
    ) -> None:
        for call in calls:
            tool, code = call.event.tool, call.code
            if not self._admit(conn, call.project_id, "tool", tool):
                call.extra["tool"] = tool
                call.flags.append("tool_limit")
                self._renamed["tool"] += 1
                call.event.tool = OTHER
                sign(call)
            if code is None:
                continue
            if not self._admit(conn, call.project_id, "code", code):
                call.extra["code"] = code
                call.flags.append("code_limit")
                self._renamed["code"] += 1
                call.code = OTHER
                sign(call)
            if call.issues:
                self._limit_arguments(conn, call)
        for folded in counts:
            name = folded.event.tool
            if name is not None and not self._admit(conn, folded.project_id, "tool", name):
                folded.event.tool = OTHER
                folded.flags.append("tool_limit")
                self._renamed["folded_tool"] += 1

    def take_renamed(self) -> Counter[str]:
        """Return how many events were renamed since the last time, by what was one too many."""
        with self._lock:
            renamed, self._renamed = self._renamed, Counter()
        return renamed

    def _limit_arguments(self, conn: Connection, call: PreparedCall) -> None:
        tool = call.event.tool
        limited = [
            row
            if not row[_ROOT] or self._admit(conn, call.project_id, "argument", tool, row[_ROOT])
            else (*row[:_PATTERN], OTHER, OTHER, *row[_CODE:])
            for row in call.issues
        ]
        if limited != call.issues:
            call.issues = limited
            call.fields = tuple((row[_PATTERN], row[_CODE]) for row in limited)
            call.flags.append("argument_limit")
            self._renamed["argument"] += 1
            sign(call)

    def _admit(self, conn: Connection, project_id: int, kind: str, *name: str) -> bool:
        known = self._known.get((project_id, kind))
        if known is None:
            known = self._known[project_id, kind] = self._load(conn, project_id, kind)
        if name in known or name[-1] == OTHER:
            return True
        if len(known) >= self._limits[kind]:
            if (project_id, kind) not in self._told:
                self._told.add((project_id, kind))
                _log.warning("name_limit", project=project_id, kind=kind, limit=len(known))
            return False
        known.add(name)
        return True

    def _load(self, conn: Connection, project_id: int, kind: str) -> set[tuple[Any, ...]]:
        query = _STORED[kind].where(_COUNTED.project_id == project_id).distinct()
        return {tuple(row) for row in conn.execute(query)}
