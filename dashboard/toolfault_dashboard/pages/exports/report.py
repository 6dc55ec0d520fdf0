"""The week as a page, one click away, and as a file."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from fastapi import APIRouter, HTTPException
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.exports.weekly import REPORT_STYLE, ReportFormat, weekly_report
from toolfault_dashboard.pages.exports.download import attached
from toolfault_dashboard.pages.shared.ask import Ask, Asked

__all__ = ["router"]

router = APIRouter()

_STYLE_HASH: Final = base64.b64encode(hashlib.sha256(REPORT_STYLE.encode()).digest()).decode()
_REPORTS: Final[dict[ReportFormat, tuple[str, dict[str, str]]]] = {
    # A browser shows it; saved or mailed it looks the same, so its style is in it.
    "html": (
        "text/html",
        {
            "Content-Disposition": "inline; filename*=UTF-8''toolfault-week.html",
            "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; "
            "form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
        },
    ),
    "markdown": ("text/markdown", attached("week.md")),
}


@router.get("/report.html", name="report_html")
def report_html(ask: Asked) -> Response:
    """Write the weekly report as a page to mail."""
    return _report(ask, "html")


@router.get("/report.md", name="report_markdown")
def report_markdown(ask: Asked) -> Response:
    """Write the weekly report as Markdown to paste."""
    return _report(ask, "markdown")


def _end(ask: Ask) -> int:
    """Return where the week ends: at the moment that the address names, else now."""
    given = ask.request.query_params.get("until", "")
    if not given:
        return ask.now
    end = queries.week_end(given, ask.now)
    if end is None:
        raise HTTPException(422, "Write until as a date such as 2026-11-01.")
    return end


def _report(ask: Ask, format: ReportFormat) -> Response:  # noqa: A002 - the name of the option
    # A week is a week: the query applies, the time window of the page does not.
    week = queries.weekly(ask.conn, ask.scope_of(ask.query), end=_end(ask))
    media_type, headers = _REPORTS[format]
    return Response(
        weekly_report(
            week,
            ask.project.name if ask.project else "",
            format,
            address=str(ask.request.base_url).rstrip("/"),  # whole: the page may be mailed
        ),
        media_type=f"{media_type}; charset=utf-8",
        headers=headers,
    )
