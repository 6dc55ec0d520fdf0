"""Live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc

from toolfault_dashboard.contexts.failures import FailureLine
from toolfault_dashboard.contexts.shell import View

__all__ = ["LiveContext"]


@dataclass(frozen=True, slots=True)
class LiveContext:
    """`live.html`."""

    view: Doc[View, "The query bar."]
    rows: Doc[tuple[FailureLine, ...], "The newest failures, newest first."]
    events: Doc[str, "Where the stream of further ones is."]
    again: Doc[str, "This page, to load it again without script."]
    most: Doc[int, "Rows that the page keeps."]
