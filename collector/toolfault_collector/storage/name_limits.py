"""How many different names a project may have, so that no key can grow an index without end.

A name beyond the limit is stored as ``other``: the call is kept and counted, its own name is in
``extra`` (that of an argument stays in the issue's ``field``), and a flag says so. Counts of folded
successes and ends of conversations have the flag alone. Each renamed event is counted in
``toolfault_names_over_limit``, the log says once that a limit was reached, and the doctor says how
many calls are ``other``.

A call of a tool that is ``other`` is in no chain, as a call outside any conversation is: a chain is
of one tool. One chain for each name would not be bounded, since every event of a conversation looks
at all of its chains without a success.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any, Final

import structlog
from msgspec.structs import replace
from sqlalchemy import Connection, select

from toolfault_collector.protocol.records import (
    CallRecord,
    CountsRecord,
    EndRecord,
    IssueRecord,
    signed,
)
from toolfault_collector.storage.tables import failure_counts

__all__ = ["OTHER", "TOOL_LIMIT", "NameLimits", "is_chained"]

OTHER: Final = "other"
# The flag of what names a tool that is ``other``.
TOOL_LIMIT: Final = "tool_limit"
# Shops with hundreds of tools exist, with thousands do not; codes are the contract's 19 and some;
# a tool has some ten arguments, and further ones are made up by a model.
MAX_TOOLS: Final = 2_000
MAX_CODES: Final = 500
MAX_ARGUMENTS: Final = 10_000

_COUNTED: Final = failure_counts.c
_STORED: Final = {
    "tool": select(_COUNTED.name).where(_COUNTED.by.in_(("tool", "folded"))),
    "code": select(_COUNTED.name).where(_COUNTED.by == "code"),
    "argument": select(_COUNTED.tool, _COUNTED.name).where(
        _COUNTED.by == "field", _COUNTED.name != ""
    ),
}

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Names:
    """The names that one project has used; arguments by tool."""

    tools: set[str]
    codes: set[str]
    arguments: defaultdict[str, set[str]]


def is_chained(call: CallRecord) -> bool:
    """Return whether *call* is of a conversation and of a tool that is told apart from others."""
    return call.session_id is not None and TOOL_LIMIT not in call.flags


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
        self._names: dict[int, _Names] = {}
        self._told: set[tuple[int, str]] = set()
        self._lock = threading.Lock()

    def apply(
        self,
        conn: Connection,
        calls: list[CallRecord],
        counts: list[CountsRecord],
        ends: list[EndRecord],
        renamed: Counter[str],
    ) -> tuple[list[CallRecord], list[CountsRecord], list[EndRecord]]:
        """Return *calls*, *counts* and *ends*, with ``other`` for names that are one too many.

        What was renamed is counted in *renamed*, by what was one too many.
        """
        with self._lock:
            return (
                [self._limit_call(conn, each, renamed) for each in calls],
                [self._limit_folded(conn, each, renamed) for each in counts],
                [self._limit_end(conn, each, renamed) for each in ends],
            )

    def _limit_folded(
        self, conn: Connection, counts: CountsRecord, renamed: Counter[str]
    ) -> CountsRecord:
        tools = self._names_of(conn, counts.project_id).tools
        if counts.tool is None or self._admit(counts.project_id, "tool", tools, counts.tool):
            return counts
        renamed["folded_tool"] += 1
        return replace(counts, tool=OTHER, flags=(*counts.flags, TOOL_LIMIT))

    def _limit_end(self, conn: Connection, end: EndRecord, renamed: Counter[str]) -> EndRecord:
        tools, calls = self._names_of(conn, end.project_id).tools, Counter[str]()
        for tool, number in end.calls.items():
            known = self._admit(end.project_id, "tool", tools, tool)
            calls[tool if known else OTHER] += number
        if calls == end.calls:
            return end
        renamed["ended_tool"] += 1
        return replace(end, calls=calls, flags=(*end.flags, TOOL_LIMIT))

    def _limit_call(self, conn: Connection, call: CallRecord, renamed: Counter[str]) -> CallRecord:
        names, failure = self._names_of(conn, call.project_id), call.failure
        if call.tool in names.tools and (
            failure is None
            or (
                failure.code in names.codes
                and names.arguments[call.tool].issuperset(failure.arguments)
            )
        ):
            return call
        tool, flags, extra = call.tool, [*call.flags], {**call.extra}
        if not self._admit(call.project_id, "tool", names.tools, tool):
            flags.append(TOOL_LIMIT)
            extra["tool"], tool = tool, OTHER
            renamed["tool"] += 1
        if failure is not None:
            code, known = failure.code, names.arguments[tool]
            if not self._admit(call.project_id, "code", names.codes, code):
                flags.append("code_limit")
                extra["code"], code = code, OTHER
                renamed["code"] += 1
            issues = tuple([self._limit_issue(call, known, issue) for issue in failure.issues])
            if issues != failure.issues:
                flags.append("argument_limit")
                renamed["argument"] += 1
            failure = signed(failure, tool=tool, code=code, issues=issues)
        return replace(call, tool=tool, failure=failure, flags=tuple(flags), extra=extra)

    def _limit_issue(self, call: CallRecord, known: set[str], issue: IssueRecord) -> IssueRecord:
        root = issue.root_field
        if not root or self._admit(call.project_id, "argument", known, root):
            return issue
        return replace(issue, field_pattern=OTHER, root_field=OTHER)

    def _admit(self, project_id: int, kind: str, known: set[str], name: str) -> bool:
        """Return whether *name*, one of those *known* or a new one, may be used."""
        if name in known or name == OTHER:
            return True
        arguments = self._names[project_id].arguments.values()
        used = sum(map(len, arguments)) if kind == "argument" else len(known)
        if used >= self._limits[kind]:
            if (project_id, kind) not in self._told:
                self._told.add((project_id, kind))
                _log.warning("name_limit", project=project_id, kind=kind, limit=used)
            return False
        known.add(name)
        return True

    def _names_of(self, conn: Connection, project_id: int) -> _Names:
        names = self._names.get(project_id)
        if names is None:
            arguments = defaultdict[str, set[str]](set)
            for tool, root in self._load(conn, project_id, "argument"):
                arguments[tool].add(root)
            tools, codes = (
                {name for (name,) in self._load(conn, project_id, kind)}
                for kind in ("tool", "code")
            )
            names = self._names[project_id] = _Names(tools, codes, arguments)
        return names

    def _load(self, conn: Connection, project_id: int, kind: str) -> set[tuple[Any, ...]]:
        query = _STORED[kind].where(_COUNTED.project_id == project_id).distinct()
        return {tuple(row) for row in conn.execute(query)}
