"""Files, patches, queries and requests: the tools of the code helper and the support desk."""

from __future__ import annotations

import re
from typing import Any

from toolfault import ToolError, ToolErrorCode, tool
from toolfault_demo import parameters
from toolfault_demo.world import FILES, TABLES, World

__all__ = ["code_tools"]


def code_tools(world: World, *, improved: bool) -> list[Any]:
    """Return the engineering tools.

    Args:
        world: What they work on.
        improved: Whether ``http_request`` coerces and reports every issue, or stops at the first
            and says little about it.
    """
    return [*_file_tools(world), _query_tool(world), _request_tool(world, improved=improved)]


def _file_tools(world: World) -> list[Any]:
    @tool(model=parameters.ReadFile, idempotent=True)
    def read_file(path: str, start_line: int, max_lines: int) -> str:
        """Read a part of a file."""
        world.work_blocking("read_file")
        if path not in FILES:
            raise ToolError(
                "read_file",
                f"No file {path!r}",
                ToolErrorCode.NOT_FOUND,
                field="path",
                retry_hint="Start `path` with src/, relative to the workspace.",
            )
        lines = FILES[path].splitlines()
        return "\n".join(lines[start_line - 1 : start_line - 1 + max_lines])

    @tool(model=parameters.ApplyPatch, idempotent=False)
    def apply_patch(path: str, diff: str) -> dict[str, Any]:
        """Apply a unified diff to a file."""
        world.work_blocking("apply_patch")
        if "@@" not in diff:
            raise ToolError(
                "apply_patch",
                "`diff` must be a unified diff with @@ hunks",
                ToolErrorCode.MALFORMED_DIFF,
                field="diff",
            )
        removed = re.findall(r"^-(?!--)(.*)$", diff, re.MULTILINE)
        if any(line not in FILES.get(path, "") for line in removed):
            # The planted message that helps nobody: it names no field and no line.
            raise ToolError("apply_patch", "The patch does not apply", ToolErrorCode.INVALID_INPUT)
        return {"path": path, "removed": len(removed)}

    return [read_file, apply_patch]


def _query_tool(world: World) -> Any:
    @tool(model=parameters.RunSql, idempotent=True)
    def run_sql(query: str, database: str, limit: int) -> dict[str, Any]:
        """Run a read-only query."""
        world.work_blocking("run_sql")
        named = re.search(r"WHERE (\w+)", query)
        columns = TABLES["orders"]
        if named and named.group(1) not in columns:
            raise ToolError(
                "run_sql",
                f"Unknown column in `query`: orders has {', '.join(columns)}",
                ToolErrorCode.NOT_FOUND,
                field="query",
                received=named.group(1),
                received_type="str",
            )
        return {"database": database, "rows": [], "limit": limit}

    return run_sql


def _request_tool(world: World, *, improved: bool) -> Any:
    # Not marked: what a second request does depends on its method.
    async def http_request(
        url: str, method: str, headers: dict[str, str], timeout_seconds: int, follow_redirects: bool
    ) -> dict[str, Any]:
        """Send one request."""
        await world.work("http_request")
        kept = {"followed": follow_redirects, "within": timeout_seconds, "headers": len(headers)}
        return {"url": url, "method": method, "status": 200, **kept}

    if improved:
        return tool(http_request, model=parameters.HttpRequest, coerce=True)
    return tool(http_request, model=parameters.HttpRequest, adapt_error=_say_little)


def _say_little(invocation: Any) -> ToolError:
    """Adapt an error as many agents do by hand: the first problem, and not what was expected."""
    full = ToolError.from_exception("http_request", invocation.exc)
    if not full.issues:
        return full
    first = full.issues[0]
    return ToolError(
        "http_request",
        f"Invalid request: `{first.field}`",
        first.code,
        field=first.field,
        issues=(first,),
    )
