"""Codes of failures: a failure counts under its own code and under the codes of its issues.

A failure with issues of different codes has the own code ``invalid_input``; under that alone nobody
would find that a field was missing. So it stands in the row of each of its codes, once. What is
drawn or added up as parts of a whole (failures over time, the cost of chains) goes by the own code.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Label, Select, and_

from toolfault_collector.storage.tables import issue, tool_call
from toolfault_dashboard.analysis.weights import Amount
from toolfault_dashboard.queries.conditions import failures_of, issues_of
from toolfault_dashboard.queries.counting.memoise import memoised
from toolfault_dashboard.queries.counting.rollups import tool_of_call
from toolfault_dashboard.queries.counting.sampling_weights import amount, counted_once, sampling
from toolfault_dashboard.queries.counting.segments import in_segments
from toolfault_dashboard.queries.scope import Scope

__all__ = ["failures_by_issue_code", "issue_codes", "of_issue_codes", "of_other_issues"]

_Pairs = Mapping[tuple[str, str], Amount]


def of_other_issues(
    where: ColumnElement[bool],
    *key: Label[Any],
    sampled: bool,
    times: Sequence[Label[Any]] = (),
) -> Select[Any]:
    """Return the select of failures by the codes of their issues, but for their own codes.

    Args:
        where: Which failures.
        key: What to group by besides.
        sampled: Whether failures may be sampled.
        times: ``first_at`` and ``last_at``, if wanted.
    """
    return counted_once(
        (*key, issue.c.code.label("code")),
        issue.join(tool_call, tool_call.c.id == issue.c.tool_call_id),
        and_(where, issue.c.code != tool_call.c.code),
        sampled=sampled,
        times=times,
    )


@memoised
def failures_by_issue_code(conn: Connection, scope: Scope) -> _Pairs:
    """Return failures by tool and the code of an issue, where their own code is another one."""
    return _together(in_segments(conn, scope, _counted, together=_together, stored=True))


def _counted(conn: Connection, scope: Scope) -> _Pairs:
    return of_issue_codes(conn.execute(issue_codes(conn, scope)))


def issue_codes(conn: Connection, scope: Scope) -> Select[Any]:
    """Return the select of `failures_by_issue_code`."""
    sampled = sampling(conn, scope.project_id).failures
    return of_other_issues(failures_of(scope) & issues_of(scope), tool_of_call(), sampled=sampled)


def of_issue_codes(rows: Iterable[Any]) -> _Pairs:
    """Return what rows of `issue_codes` say."""
    return {(tool, code): amount(numbers) for tool, code, *numbers in rows}


def _together(segments: Sequence[_Pairs]) -> _Pairs:
    found: dict[tuple[str, str], Amount] = {}
    for segment in segments:
        for pair, each in segment.items():
            found[pair] = found.get(pair, Amount()) + each
    return found
