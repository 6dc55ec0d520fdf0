"""Compare: any query against any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar, Final

from fastapi import APIRouter, HTTPException
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.analysis.comparisons.by_code import CodeEffect
from toolfault_dashboard.analysis.comparisons.effect import Effect, MetricEffect
from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.exports.comparisons import overlap_sentence
from toolfault_dashboard.formats import count, percent, points
from toolfault_dashboard.pages.comparisons.effects import (
    METRIC_COLUMNS,
    certainty,
    metric_lines,
    verdict_sentence,
)
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.frame import Context, Link, View
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.queries import Comparison, Scope
from toolfault_dashboard.search import Clause, Pattern, QueryError, parse

__all__ = ["COMPARED_CODES", "COMPARISON", "router"]


@dataclass(frozen=True, slots=True)
class CompareContext(Context):
    """What `compare.html` shows."""

    template: ClassVar[str] = "compare.html"

    view: Doc[View, "The query bar: what both cohorts have in common."]
    before: Doc[str, "The query of the first cohort, as typed."]
    after: Doc[str, "The query of the second cohort, as typed."]
    problem: Doc[str, "Which cohort cannot be read and why; empty if both can."]
    presets: Doc[tuple[Link, ...], "Comparisons that are often wanted."]
    effect: Doc[Effect | None, "First cohort against second; None before two queries are given."]
    sentence: Doc[str, "The verdict in a sentence; empty before."]
    detail: Doc[str, "How sure that is, in a sentence; empty before."]
    overlap: Doc[str, "How many calls are in both cohorts, in a sentence; empty if none is."]
    metrics: Doc[Drawn, "The metrics."]
    codes: Doc[Drawn, "Every code, most failures first."]
    links: Doc[
        dict[str, str],
        "Addresses: before, after (failures of each cohort), csv, codes_csv, changes.",
    ]


router = APIRouter()

CODES: Final = 30
_LABELS: Final = ("before", "after")


def _cohorts(ask: Ask) -> tuple[str, str]:
    given = ask.request.query_params
    return given.get("before", "").strip(), given.get("after", "").strip()


def _problem(ask: Ask) -> str:
    for label, text in zip(("first", "second"), _cohorts(ask), strict=True):
        try:
            parse(text)
        except QueryError as error:
            meant = f" Did you mean {error.suggestion}?" if error.suggestion else ""
            return f"The {label} query, column {error.column}: {error.message}{meant}"
    return ""


def _asked(ask: Ask) -> Comparison:
    """Return the comparison that the address asks for.

    Raises:
        HTTPException: 422, a cohort is missing or cannot be read.
    """
    before, after = _cohorts(ask)
    problem = _problem(ask)
    if problem or not (before or after):
        raise HTTPException(422, problem or "Write a query for at least one cohort.")
    left, right = (_cohort(ask, text) for text in (before, after))
    return queries.comparison(ask.conn, left, right, labels=_LABELS)


def _cohort(ask: Ask, text: str) -> Scope:
    """Return a cohort: its own times where it names some, else those of the page."""
    common = ask.query if parse(text).has("since", "until") else ask.effective
    return queries.cohort_scope(ask.scope_of(common), text)


COMPARISON: Final = Table(
    *METRIC_COLUMNS,
    file="comparison", row=MetricEffect, rows=lambda ask: _asked(ask).effect.metrics,
)  # fmt: skip
COMPARED_CODES: Final = Table(
    Column("code", "Code", "code", lambda row: row.code or "none"),
    Column("before", "Before", value=lambda row: _share(row.before), number=True),
    Column("after", "After", value=lambda row: _share(row.after), number=True),
    Column("difference", "Difference", number=True, value=lambda row: points(row.difference)),
    Column("interval", "95% interval", style="ci",
           value=lambda row: f"{points(row.low)} to {points(row.high)}"),
    Column("verdict", "Verdict", "verdict", label=""),
    file="comparison-codes", row=CodeEffect, rows=lambda ask: _asked(ask).codes,
)  # fmt: skip


def _share(found: Rate) -> str:
    return f"{count(found.count)} ({percent(found.value)})"


@router.get("/compare", name="compare")
def compare(ask: Asked) -> Response:
    """Render the form and, once there are two cohorts, the effect between them."""
    before, after = _cohorts(ask)
    problem, found = _problem(ask), None
    if (before or after) and not problem:
        try:
            found = _asked(ask)
        except QueryError as error:  # a key that the role may not ask for
            problem = error.message
    context = CompareContext(
        view=ask.view("/compare", **_given(before, after)),
        before=before,
        after=after,
        problem=problem,
        presets=_presets(ask),
        effect=found.effect if found else None,
        sentence=verdict_sentence(found.effect) if found else "",
        detail=certainty(found.effect) if found else "",
        overlap=overlap_sentence(found) if found else "",
        metrics=COMPARISON.drawn(metric_lines(found.effect) if found else ()),
        codes=COMPARED_CODES.drawn(found.codes[:CODES] if found else ()),
        links=_links(ask, found, before, after),
    )
    return ask.render(context, title="Compare", status=422 if problem else 200)


def _given(before: str, after: str) -> dict[str, str]:
    return {name: text for name, text in (("before", before), ("after", after)) if text}


def _links(ask: Ask, found: Comparison | None, before: str, after: str) -> dict[str, str]:
    links = {"changes": ask.link("/changes", "", window="")}
    if found is None:
        return links
    given = _given(before, after)
    return links | {
        "before": ask.link("/failures", found.effect.before.query, window="all"),
        "after": ask.link("/failures", found.effect.after.query, window="all"),
        "csv": ask.link("/comparison.csv", **given),
        "codes_csv": ask.link("/comparison-codes.csv", **given),
    }


def _presets(ask: Ask) -> tuple[Link, ...]:
    """Return the last week against the one before, and the two newest releases."""
    pairs = [("This week against the week before", "since:14d until:7d", "since:7d")]
    newest = [name for name in _releases(ask) if name][:2]
    if len(newest) == 2:
        after, before = newest
        texts = [str(Clause("release", (Pattern((name,)),))) for name in (before, after)]
        pairs.append((f"Release {after} against {before}", texts[0], texts[1]))
    given = _cohorts(ask)
    return tuple(
        Link(label, ask.link("/compare", before=first, after=second), (first, second) == given)
        for label, first, second in pairs
    )


def _releases(ask: Ask) -> list[str]:
    found = queries.values_of(ask.conn, ask.scope, "release", limit=20)
    return sorted((value.value for value in found), key=_version, reverse=True)


def _version(text: str) -> tuple[tuple[int, str], ...]:
    """Return what sorts 1.10 after 1.9."""
    return tuple(
        (int(part), "") if part.isdecimal() else (-1, part)
        for part in text.removeprefix("v").replace("-", ".").split(".")
    )
