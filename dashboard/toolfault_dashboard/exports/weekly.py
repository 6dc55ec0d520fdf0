"""The week as a file one can mail: HTML, Markdown or CSV."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal
from urllib.parse import urlencode

from toolfault_collector.clock import DAY_US, format_time
from toolfault_dashboard.exports.cells import guarded
from toolfault_dashboard.exports.comparisons import HEADINGS, comparison_lines
from toolfault_dashboard.exports.markdown import markdown_table, markdown_text
from toolfault_dashboard.formats import percent, percent_interval
from toolfault_dashboard.queries.figures.weekly import Week
from toolfault_dashboard.queries.fixes.fix_next import FixRow
from toolfault_dashboard.queries.rows import FrequencyRow, Overview
from toolfault_dashboard.search import QueryError, parse

__all__ = ["REPORT_FORMATS", "REPORT_STYLE", "ReportFormat", "empty_week", "weekly_report"]

ReportFormat = Literal["html", "markdown", "csv"]
REPORT_FORMATS: Final[tuple[ReportFormat, ...]] = ("html", "markdown", "csv")


@dataclass(frozen=True, slots=True)
class _Part:
    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[object]]
    links: Sequence[str] = ()  # where the first cell of each row leads


def weekly_report(
    week: Week,
    project: str,
    format: ReportFormat,  # noqa: A002 - the option
    *,
    address: str = "",
) -> str:
    """Return the report of *week* for *project* as text.

    Args:
        week: What was counted.
        project: Its name.
        format: What the text is.
        address: Where the dashboard is reached, such as ``https://toolfault.example.org``. Codes,
            tools, kinds, fixes and changes link there; without it nothing is a link. CSV has none.
    """
    title = f"Tool-call failures of {project}, {_day(week.begin)} to {_day(week.end)}"
    linked = _Links(week, project, address)
    parts = [_told_apart(part) for part in _parts(week, linked) if part.rows]
    if format == "csv":
        return _csv(parts)
    if format == "markdown":
        return _markdown(title, empty_week(week), parts)
    return _html(title, empty_week(week), parts)


def empty_week(week: Week) -> str:
    """Say where the data is if *week* and the one before have none; else return nothing."""
    if week.newest_at is not None:
        until = _day(week.newest_at + DAY_US)
        return (
            f"Nothing was called in these days. The newest failure is of {_day(week.newest_at)}: "
            f"toolfault report weekly --until {until} reports the week that ends with that day."
        )
    if week.untimed:
        return (
            f"Nothing was called in these days: the calls have no times, as in some transcripts, "
            f"so they are in no {week.period}. Overview and toolfault summary count them."
        )
    return ""


@dataclass(frozen=True, slots=True)
class _Links:
    """Addresses of what the rows of a report are about, within its days."""

    week: Week
    project: str
    address: str

    def rows(self, clauses: str) -> str:
        """Return where the failures are that *clauses* select."""
        begin, end = (format_time(at) for at in (self.week.begin, self.week.end))
        try:
            asked = parse(self.week.query).and_(parse(clauses))
        except QueryError:  # a name with a control character, which no query can hold
            return ""
        return self.to("/failures", q=str(asked.and_(parse(f"since:{begin} until:{end}"))))

    def to(self, path: str, **asked: str) -> str:
        """Return the address of a page."""
        if not self.address:
            return ""
        return f"{self.address}{path}?{urlencode({'project': self.project, **asked})}"


def _parts(week: Week, linked: _Links) -> list[_Part]:
    each = week.period
    return [
        _Part(f"This {each}", ("figure", f"this {each}", f"the {each} before"), _figures(week)),
        _Part(f"Against the {each} before", HEADINGS, comparison_lines(week.against_last)),
        _frequencies("Codes", "code", week.codes, linked),
        _frequencies("Tools", "tool", week.tools, linked),
        _Part(
            f"New this {each}",
            ("signature", "tool", "code", "failures"),
            [(row.name[:12], row.tool, row.code, row.failures) for row in week.new],
            [linked.rows(row.query) for row in week.new],
        ),
        _Part(
            "Fix next"
            if week.fixes_of is None
            else f"Fix next, of the newest {week.fixes_of} failures",
            ("what to do", "number", "calls saved", "calls spent", "failures", "also under"),
            [
                (
                    _to_do(row),
                    row.number,
                    _calls(row, "saved"),
                    _calls(row, "cost"),
                    row.failures,
                    _also(row),
                )
                for row in week.fixes
            ],
            [linked.rows(row.query) for row in week.fixes],
        ),
        _Part(
            "Changes",
            ("label", "tool", "when"),
            [(row.label, row.tool or "all", format_time(row.occurred_at)) for row in week.changes],
            [linked.to(f"/changes/{row.event_id}") for row in week.changes],
        ),
    ]


def _to_do(row: FixRow) -> str:
    if row.remedy == "open":
        return f"{row.title} (no known remedy)"
    # Of one tool several messages may want other words.
    return f"{row.title}: {row.detail}" if row.remedy == "reword" else row.title


def _also(row: FixRow) -> str:
    """Say how many failures of *row* stand in rows with other numbers too."""
    numbers = " and ".join(str(number) for number in row.shared_with)
    return f"{row.shared} under number {numbers}" if numbers else "–"


def _told_apart(part: _Part) -> _Part:
    """Return *part* with a number behind every name that stands there already.

    A label may be used twice, and a row of CSV has nothing but its name to be known by.
    """
    taken: set[str] = set()
    rows: list[Sequence[object]] = []
    for name, *cells in part.rows:
        shown, number = name, 1
        while str(guarded(shown)) in taken:
            number += 1
            shown = f"{name} ({number})"
        taken.add(str(guarded(shown)))
        rows.append((shown, *cells))
    return replace(part, rows=rows)


def _figures(week: Week) -> list[tuple[object, ...]]:
    names = (
        "conversations",
        "calls",
        "failures",
        "chains",
        "recovered",
        "abandoned",
        "round_trips",
        "calls_spent",
    )
    counts: list[tuple[object, ...]] = [
        (name.replace("_", " "), *(getattr(side.summary, name) for side in (week.this, week.last)))
        for name in names
    ]
    shares = [
        (name.replace("_", " "), *(_share(side, name) for side in (week.this, week.last)))
        for name in ("failure_rate", "first_try", "recovery_rate")
    ]
    return [*counts, *shares]


def _share(side: Overview, name: str) -> str:
    value = getattr(side, name).value
    return "–" if value is None else percent(value)


def _frequencies(title: str, name: str, rows: Sequence[FrequencyRow], linked: _Links) -> _Part:
    return _Part(
        title,
        (name, "failures", "of calls", "95% interval"),
        [
            (
                row.name,
                row.failures,
                "–" if row.rate.value is None else percent(row.rate.value),
                "–" if row.rate.low is None else percent_interval(row.rate),
            )
            for row in rows
        ],
        [linked.rows(row.query) for row in rows],
    )


def _calls(row: FixRow, what: str) -> str:
    """Say how many calls these are this week, and a week where its data are of a day or more."""
    names = (what, *(f"{what}_per_week{end}" for end in ("", "_low", "_high")))
    calls, per_week, low, high = (getattr(row, name) for name in names)
    if calls is None:
        return "–"
    number = f"{round(calls):,}"
    if per_week is None:
        return number
    return f"{number}; {per_week:.1f} a week ({low:.1f} to {high:.1f})"


def _day(at: int) -> str:
    return format_time(at)[:10]


def _csv(parts: Sequence[_Part]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(("part", "row", "column", "value"))
    for part in parts:
        for row in part.rows:
            for heading, value in zip(part.headings[1:], row[1:], strict=True):
                writer.writerow([guarded(each) for each in (part.title, row[0], heading, value)])
    return buffer.getvalue()


def _markdown(title: str, note: str, parts: Sequence[_Part]) -> str:
    tables = [
        f"## {part.title}\n\n{markdown_table(part.headings, part.rows, part.links)}"
        for part in parts
    ]
    head = [f"# {markdown_text(title)}\n", *((f"{markdown_text(note)}\n",) if note else ())]
    return "\n".join([*head, *tables])


REPORT_STYLE: Final = (
    "body{font:15px/1.4 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;margin:0 0 2rem}caption{text-align:left;font-weight:600}"
    "th,td{padding:.25rem .75rem;border-bottom:1px solid #ccc;text-align:left}"
    ".num{text-align:right}"
)
"""The style of the HTML report, which a strict content policy has to allow by its hash."""


def _html(title: str, note: str, parts: Sequence[_Part]) -> str:
    """Return one self-contained file without scripts; every name is escaped."""
    tables = "\n".join(_table(part) for part in parts)
    shown = html.escape(title)
    said = f"<p>{html.escape(note)}</p>\n" if note else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{shown}</title>'
        f"<style>{REPORT_STYLE}</style></head>\n<body><h1>{shown}</h1>\n{said}{tables}\n</body></html>\n"
    )


def _table(part: _Part) -> str:
    kinds = [
        ' class="num"' if all(_is_figure(each) for each in column) else ""
        for column in zip(*part.rows, strict=True)
    ]
    head = "".join(
        f'<th scope="col"{kind}>{html.escape(each)}</th>'
        for kind, each in zip(kinds, part.headings, strict=True)
    )
    links = part.links or [""] * len(part.rows)
    rows = "\n".join(
        f"<tr>{_cells(row, kinds, link)}</tr>" for row, link in zip(part.rows, links, strict=True)
    )
    return (
        f"<table><caption>{html.escape(part.title)}</caption>"
        f"<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table>"
    )


def _cells(row: Sequence[object], kinds: Sequence[str], link: str) -> str:
    first, *others = (html.escape(_text(each)) for each in row)
    if link:
        first = f'<a href="{html.escape(link)}">{first}</a>'
    return "".join(
        f"<td{kind}>{each}</td>" for kind, each in zip(kinds, [first, *others], strict=True)
    )


def _is_figure(value: object) -> bool:
    """Whether *value* is a number, as a whole, so that its column is read from the right."""
    return re.fullmatch(r"[+\-\u2212]?[\d.,]+(%| pp)?|\u2013", _text(value)) is not None


def _text(value: object) -> str:
    return "" if value is None else str(value)
