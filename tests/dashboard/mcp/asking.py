"""Asking the tools of coding agents in this process: one answer, or every page of one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from sqlalchemy import Connection
from tests.dashboard.generated import NOW

from toolfault_dashboard.mcp.answers import estimated_tokens
from toolfault_dashboard.mcp.tools import TOOLS, answered
from toolfault_dashboard.queries import Audience

__all__ = ["everything", "pages", "text_of"]


def text_of(
    conn: Connection, project: int, tool: str, audience: Audience = "llm", **given: Any
) -> str:
    """The answer of *tool*, which is no longer than it may be."""
    text = answered(conn, project, tool, given, now=NOW, audience=audience)
    assert estimated_tokens(text) <= TOOLS[tool].tokens, tool
    return text


def pages(
    conn: Connection, project: int, tool: str, audience: Audience = "llm", **given: Any
) -> Iterator[str]:
    """Every page of the answer of *tool*."""
    cursor = ""
    while True:
        more = {"cursor": cursor} if cursor else {}
        text = text_of(conn, project, tool, audience, **given, **more)
        yield text
        cursor = json.loads(text).get("next_cursor", "")
        if not cursor:
            return


def everything(
    conn: Connection, project: int, audience: Audience = "llm", *, most: int | None = None
) -> Iterator[str]:
    """Every page of every tool, or the first, with some of the kinds, chains and changes.

    Args:
        conn: To the database.
        project: Whose answers.
        audience: Who asks.
        most: Pages of a list, kinds, chains and changes; None is all pages and some of the others.
    """
    for tool in ("overview", "fix_next"):
        yield from islice(pages(conn, project, tool, audience), most)
    kinds, chains, changes = set(), set(), set()
    for text in islice(pages(conn, project, "kinds", audience), most):
        kinds |= {row["kind"] for row in json.loads(text)["kinds"]}
        yield text
    for text in islice(pages(conn, project, "search", audience), most):
        rows = json.loads(text)["rows"]
        chains |= {row.get("chain") for row in rows} - {None}
        yield text
    for text in islice(pages(conn, project, "changes", audience), most):
        changes |= {row.get("change") for row in json.loads(text)["changes"]} - {None}
        yield text
    for kind in sorted(kinds)[: most or 8]:
        yield text_of(conn, project, "kind", audience, kind=kind)
    for chain in sorted(chains)[: most or 15]:
        yield from pages(conn, project, "chain", audience, chain=chain)
    for change in sorted(changes)[: most or 3]:
        yield text_of(conn, project, "compare", audience, change=change)
    yield text_of(conn, project, "compare", audience, before="until:1d", after="since:1d")
