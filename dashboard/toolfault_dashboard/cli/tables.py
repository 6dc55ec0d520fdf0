"""Figures as tables on a terminal."""

from __future__ import annotations

import os
import unicodedata

from rich.console import Console
from rich.table import Table
from rich.text import Text

from toolfault_dashboard.analysis.rates import Rate
from toolfault_dashboard.queries.rows import Overview

__all__ = ["cell", "fitting", "print_overview", "print_table"]

MOST_ROWS = 20
WIDE = 400
MOST_IN_CELL = 40
"""Characters of a line of a cell by which a column asks for room."""
_BORDERS = 3


def cell(value: object) -> Text:
    """Return *value* as inert text: no markup, and control characters made visible.

    Fractions have two decimals.
    """
    if value is None:
        return Text("–")
    if isinstance(value, float):
        return Text(f"{value:.2f}")
    return Text("".join(_visible(character) for character in str(value)))


def _visible(character: str) -> str:
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}:
        return f"\\u{ord(character):04x}"
    return character


def print_table(title: str, headings: list[str], rows: list[list[object]]) -> None:
    """Print *rows* under *headings* to standard output, numbers to the right."""
    table = Table(title=title, title_justify="left")
    for index, heading in enumerate(headings):
        number = any(isinstance(row[index], int | float) for row in rows)
        # A word that does not fit goes on in the next line; by default it would be cut.
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell(value) for value in row))
    # What is no terminal is a file or a pipe, which has a width only if somebody says so.
    (Console() if _has_width() else Console(width=WIDE)).print(table)


def _has_width() -> bool:
    return Console().is_terminal or os.environ.get("COLUMNS", "").isdecimal()


def fitting(headings: list[str], rows: list[list[object]]) -> int:
    """Return how many of the first columns the terminal has room for, at least one.

    A file or a pipe has room for all, unless ``COLUMNS`` says how wide it is.
    """
    if not _has_width() or not rows:
        return len(headings)
    left, fit = Console().width - 1, 0
    for heading, values in zip(headings, zip(*rows, strict=True), strict=True):
        longest = max(len(str(value)) for value in values)
        left -= max(len(heading), min(longest, MOST_IN_CELL)) + _BORDERS
        if left < 0:
            break
        fit += 1
    return max(1, fit)


def print_overview(overview: Overview) -> None:
    """Print the figures of a scope, its tools and its codes."""
    found = overview.summary
    print_table(
        "Summary",
        ["", "n"],
        [
            ["conversations", found.conversations],
            ["calls", found.calls],
            ["failures", found.failures],
            ["failure rate", _rate(overview.failure_rate)],
            ["first-try success", _rate(overview.first_try)],
            ["chains", found.chains],
            ["  recovered", found.recovered],
            ["  switched", found.switched],
            ["  abandoned", found.abandoned],
            ["  open", found.open],
            ["recovery rate", _rate(overview.recovery_rate)],
            ["round trips", found.round_trips],
            ["calls spent", found.calls_spent],
            ["failures before recovery", _number(found.mean_failures_before_recovery)],
        ],
    )
    if found.tools:
        print_table(
            "Tools, most failures first",
            ["tool", "calls", "failures"],
            [[n, t.calls, t.failures] for n, t in list(found.tools.items())[:MOST_ROWS]],
        )
    if found.codes:
        print_table(
            "Codes",
            ["code", "failures"],
            [[c, n] for c, n in list(found.codes.items())[:MOST_ROWS]],
        )
    if overview.sampled:
        Console(stderr=True).print(
            Text("Calls were sampled: each counts as those it stands for, conversations do not.")
        )
    if overview.not_restricting_calls:
        keys = ", ".join(overview.not_restricting_calls)
        Console(stderr=True).print(Text(f"Calls are not restricted by: {keys}."))


def _rate(rate: Rate) -> str | None:
    if rate.value is None or rate.low is None or rate.high is None:
        return None
    return f"{rate.value:.1%} ({rate.low:.1%} to {rate.high:.1%} of {rate.n})"


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"
