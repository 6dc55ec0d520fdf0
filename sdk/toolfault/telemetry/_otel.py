"""The active OpenTelemetry span, where the host uses OpenTelemetry at all."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["active_span", "span_ids"]


def active_span() -> Any:
    """Return the recording span of this context, or None.

    OpenTelemetry is never imported: a host that uses it has done so already.
    """
    trace = sys.modules.get("opentelemetry.trace")
    current = getattr(trace, "get_current_span", None)
    if current is None:
        return None
    span = current()
    return span if span.is_recording() else None


def span_ids(span: Any) -> tuple[str, str] | None:
    """Return trace and span id in hex (W3C Trace Context), or None for an invalid span."""
    context = span.get_span_context()
    if not context.is_valid:
        return None
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"
