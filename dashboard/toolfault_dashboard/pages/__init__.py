"""The pages, one per file: parse the query, ask ``queries``, build a context, render."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from toolfault_dashboard.pages import (
    access,
    alerts,
    breakdown,
    chain,
    changes,
    codes,
    compare,
    complete,
    conversation,
    experiments,
    exports,
    failure,
    failures,
    fix_next,
    guide,
    kinds,
    live,
    messages,
    overview,
    received,
    rejected,
    report,
    round_trips,
    settings,
    start,
    time_range,
    tools,
    views,
)

__all__ = ["ROUTERS"]

# CSV addresses come before the pages whose paths take anything.
ROUTERS: Final[tuple[APIRouter, ...]] = (
    access.router,
    exports.router,
    report.router,
    overview.router,
    start.router,
    failures.router,
    kinds.router,
    failure.router,
    round_trips.router,
    chain.router,
    conversation.router,
    codes.router,
    breakdown.router,
    tools.router,
    changes.router,
    compare.router,
    complete.router,
    time_range.router,
    experiments.router,
    fix_next.router,
    messages.router,
    live.router,
    views.router,
    alerts.router,
    received.router,
    rejected.router,
    settings.router,
    guide.router,
)
