"""The pages, one per file: parse the query, ask ``queries``, build a context, render.

Each stands in the folder of its subject; what they have in common is in ``shared``.
"""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter

from toolfault_dashboard.pages.chains import chain, conversation, round_trips
from toolfault_dashboard.pages.comparisons import changes, compare, experiments
from toolfault_dashboard.pages.exports import report, tables
from toolfault_dashboard.pages.failures import failure, failures, kinds, live
from toolfault_dashboard.pages.figures import breakdown, codes, overview, tools
from toolfault_dashboard.pages.fixes import fix_next, messages
from toolfault_dashboard.pages.ingest import received, rejected, start
from toolfault_dashboard.pages.settings import alerts, docs, settings, sign_in, views
from toolfault_dashboard.pages.settings import help as help_page
from toolfault_dashboard.pages.shared import complete, time_range

__all__ = ["ROUTERS"]

# CSV addresses come before the pages whose paths take anything.
ROUTERS: Final[tuple[APIRouter, ...]] = (
    sign_in.router,
    tables.router,
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
    help_page.router,
    docs.router,
)
