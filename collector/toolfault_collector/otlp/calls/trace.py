"""One trace as a tree: copies removed, in an order that does not depend on how it arrived."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from toolfault_collector.otlp.calls.dialects import Reading, Role
from toolfault_collector.otlp.calls.spans import LogRecord, Span

__all__ = ["Trace"]

MAX_DEPTH: Final = 256


class Trace:
    """The spans of one trace with what each stands for.

    Args:
        spans: In any order; of two spans with one id the one that ended later is kept.
        logs: In any order; equal records are one record.
    """

    def __init__(self, spans: Iterable[Span], logs: Iterable[LogRecord]) -> None:
        by_id: dict[str, Span] = {}
        for span in spans:
            known = by_id.setdefault(span.span_id, span)
            if known is not span and _rank(span) > _rank(known):
                by_id[span.span_id] = span
        self.spans: Sequence[Span] = sorted(by_id.values(), key=_order)
        self.by_id: Mapping[str, Span] = by_id
        self.readings: Mapping[str, Reading] = {each.span_id: Reading(each) for each in self.spans}
        once = {repr(log): log for log in logs}
        self.logs: Sequence[LogRecord] = [once[key] for key in sorted(once)]
        self._logs_of: defaultdict[str, list[LogRecord]] = defaultdict(list)
        for log in self.logs:
            if log.span_id:
                self._logs_of[log.span_id].append(log)

    def logs_of(self, span: Span) -> Sequence[LogRecord]:
        """Return the log records of a span."""
        return self._logs_of.get(span.span_id, ())

    def role(self, span: Span) -> Role:
        """Say what a span stands for."""
        return self.readings[span.span_id].role

    def above(self, span: Span) -> Iterator[Span]:
        """Yield the ancestors of a span that are known, the nearest first."""
        seen = {span.span_id}
        parent = self.by_id.get(span.parent_id or "")
        while parent is not None and parent.span_id not in seen and len(seen) < MAX_DEPTH:
            yield parent
            seen.add(parent.span_id)
            parent = self.by_id.get(parent.parent_id or "")

    def agent_of(self, span: Span) -> str:
        """Return the id of the agent's span above, else of the topmost known span."""
        top = span
        for each in self.above(span):
            if self.role(each) == "agent":
                return each.span_id
            top = each
        # Spans whose common parent never came are still of one agent.
        return top.parent_id or top.span_id

    @cached_property
    def requests(self) -> Mapping[str, Sequence[Span]]:
        """By model span, the single requests within it, in the order in which they began.

        Instrumentations put spans of models into each other: a framework's around its client's,
        or one around the whole loop of requests and tools. The innermost is one request.
        """
        within: defaultdict[str, list[Span]] = defaultdict(list)
        models = [each for each in self.spans if self.role(each) == "model"]
        around = {each.span_id: self._models_around(each) for each in models}
        outer = {above for found in around.values() for above in found}
        for each in models:
            if each.span_id not in outer:
                for span_id in (each.span_id, *around[each.span_id]):
                    within[span_id].append(each)
        return within

    def _models_around(self, span: Span) -> list[str]:
        found = []
        for each in self.above(span):
            if self.role(each) in ("agent", "tool", "part"):
                break
            if self.role(each) == "model":
                found.append(each.span_id)
        return found


def _order(span: Span) -> tuple[int, str]:
    return span.start_us, span.span_id


def _rank(span: Span) -> tuple[int, str]:
    return span.end_us, repr(span)
