"""The conditions of a scope: the one door between a reader's query and a statement.

Every statement over stored rows takes its condition from here, so that none forgets the project
and none lets a reader probe by filtering what the reader may not see.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, and_, true

from toolfault_collector.storage.tables import issue, tool_call
from toolfault_dashboard.queries.scope import Scope
from toolfault_dashboard.queries.visibility import check_query
from toolfault_dashboard.queries.windows import window
from toolfault_dashboard.search import where
from toolfault_dashboard.search.sql import by_storage

__all__ = ["calls_of", "chains_of", "counts_of", "failures_of", "issues_of"]


def failures_of(scope: Scope) -> ColumnElement[bool]:
    """Return the condition for the failures of *scope* on ``tool_call``.

    Raises:
        QueryError: The query filters on what its reader may not see.
    """
    check_query(scope)
    return where.failures_where(scope.project_id, scope.query, scope.now)


def issues_of(scope: Scope) -> ColumnElement[bool]:
    """Return where ClickHouse finds the issues of the failures of *scope*: it reads no others.

    An issue has the project and the time of its failure, by whose id other engines find it.
    """
    since, until = window(scope)
    bounds = [issue.c.project_id == scope.project_id]
    bounds += [] if since is None else [issue.c.occurred_at >= since]
    bounds += [] if until is None else [issue.c.occurred_at < until]
    return by_storage(true(), and_(*bounds))


def chains_of(scope: Scope) -> ColumnElement[bool]:
    """Return the condition for the chains of *scope* on ``chain``; see `failures_of`."""
    check_query(scope)
    return where.chains_where(scope.project_id, scope.query, scope.now)


def calls_of(scope: Scope, *, of_one_conversation: bool = False) -> ColumnElement[bool]:
    """Return the condition for the reported calls of *scope*, failed or not; see `failures_of`.

    Args:
        scope: Which calls.
        of_one_conversation: Whether the statement looks for those of one conversation at a time.
    """
    check_query(scope)
    calls = where.calls_where(scope.project_id, scope.query, scope.now)
    if of_one_conversation:
        return calls
    if scope.query.has("since", "until") and not scope.query.has("tool", "conversation"):
        # Every call is one or the other; said so that the index by time can be used, which begins
        # with it.
        return and_(calls, tool_call.c.success.in_([True, False]))
    return calls


def counts_of(scope: Scope) -> ColumnElement[bool]:
    """Return the condition for its folded successes on ``call_counts``; see `failures_of`."""
    check_query(scope)
    return where.counts_where(scope.project_id, scope.query, scope.now)
