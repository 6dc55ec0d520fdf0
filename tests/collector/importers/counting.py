"""What the product counts, from parsed conversations and from the database."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, case, func, select
from tests.collector.importers.recount import Count

from toolfault_collector.chains.fold import Call as FoldedCall
from toolfault_collector.chains.fold import fold
from toolfault_collector.clock import now_us
from toolfault_collector.importers import Conversation, Problem, parse_file
from toolfault_collector.storage.tables import call_counts, chain, tool_call


def parsed(path: Path, **options: Any) -> list[Conversation]:
    """Give the conversations of a file, which must have no problem."""
    items = list(parse_file(path, now=now_us(), **options))
    problems = [item for item in items if isinstance(item, Problem) and item.severity == "error"]
    assert not problems
    return [item for item in items if isinstance(item, Conversation)]


def count_parsed(conversation: Conversation) -> Count:
    """Count a parsed conversation with the product's own fold."""
    by_tool: dict[str, list[FoldedCall]] = defaultdict(list)
    tools: dict[str, tuple[int, int]] = {}
    for call in conversation.calls:
        calls, failed = tools.get(call.tool, (0, 0))
        tools[call.tool] = (calls + 1, failed + (call.status == "failed"))
        if call.status != "missing":
            by_tool[call.tool].append(
                FoldedCall(
                    call.identity,
                    call.started_at or 0,
                    call.ended_at or 0,
                    call.position,
                    call.turn,
                    call.status == "ok",
                    "import" if conversation.timed else "none",
                    code="code",
                )
            )
    chains = [
        found
        for of_tool in by_tool.values()
        for found in fold(sorted(of_tool, key=lambda call: call.key))
    ]
    return Count(
        calls=len(conversation.calls),
        failed=conversation.failures,
        no_result=sum(call.status == "missing" for call in conversation.calls),
        chains=len(chains),
        recovered=sum(found.recovered for found in chains),
        round_trips=sum(found.round_trips for found in chains),
        tools=tools,
    )


def count_stored(engine: Engine, project_id: int) -> dict[str, Count]:
    """Count what is stored, by conversation; unanswered calls have none, and count under ''."""
    counts: dict[str, Count] = defaultdict(Count)
    failed = case((tool_call.c.success, 0), else_=1)
    calls = (
        select(tool_call.c.session_id, tool_call.c.tool, func.count(), func.sum(failed))
        .where(tool_call.c.project_id == project_id)
        .group_by(tool_call.c.session_id, tool_call.c.tool)
    )
    recovered = case((chain.c.recovered_at.is_not(None), 1), else_=0)
    chains = (
        select(
            chain.c.session_id,
            func.count(),
            func.sum(recovered),
            func.sum(chain.c.round_trips),
        )
        .where(chain.c.project_id == project_id)
        .group_by(chain.c.session_id)
    )
    unanswered = (
        select(call_counts.c.tool, func.sum(call_counts.c.calls))
        .where(call_counts.c.project_id == project_id)
        .group_by(call_counts.c.tool)
    )
    with engine.connect() as conn:
        for session, tool, number, failures in conn.execute(calls):
            found = Count(calls=number, failed=int(failures), tools={tool: (number, int(failures))})
            counts[session].add(found)
        for session, number, recoveries, round_trips in conn.execute(chains):
            counts[session].add(
                Count(chains=number, recovered=int(recoveries), round_trips=int(round_trips))
            )
        for tool, number in conn.execute(unanswered):
            found = Count(calls=int(number), no_result=int(number), tools={tool: (int(number), 0)})
            counts[""].add(found)
    return dict(counts)


def total(counts: list[Count]) -> Count:
    """Add counts up."""
    result = Count()
    for each in counts:
        result.add(each)
    return result
