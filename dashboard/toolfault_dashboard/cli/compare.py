"""``compare``: before against after, as a table and as a gate for CI.

Exit codes: 0 compared and no gate shut, 1 a gate shut, 2 could not be compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from toolfault_dashboard.cli.options import (
    DatabaseOption,
    Failed,
    ProjectOption,
    QueryArgument,
    WronglyUsed,
    reading,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from toolfault_dashboard.queries import Comparison, Scope
    from toolfault_dashboard.queries.rows import ChangeRow

__all__ = ["register"]

FORMATS = ("table", "json", "csv", "markdown", "agent")


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("compare")(compare)


def compare(  # noqa: PLR0913, PLR0917 - one argument per option
    context: typer.Context,
    query: QueryArgument = None,
    before: Annotated[
        str | None, typer.Option("--before", help="Query of the cohort before.")
    ] = None,
    after: Annotated[str | None, typer.Option("--after", help="Query of the cohort after.")] = None,
    change: Annotated[
        str | None, typer.Option("--change", help="Event id or label of a change, or 'last'.")
    ] = None,
    variants: Annotated[
        tuple[str, str] | None,
        typer.Option("--variants", metavar="A B", help="Two variants; A is the control."),
    ] = None,
    releases: Annotated[
        tuple[str, str] | None, typer.Option("--releases", metavar="A B", help="Two releases.")
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option("--metric", help="Only this metric; may be given again."),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option("--fail-if", help="Exit 1 when this holds, such as 'failure_rate worse'."),
    ] = None,
    format: Annotated[  # noqa: A002 - the option
        str, typer.Option("--format", help=f"{', '.join(FORMATS)}.")
    ] = "table",
    project: ProjectOption = None,
    database_url: DatabaseOption = None,
) -> None:
    """Compare two cohorts: difference with interval, and a verdict for each metric."""
    from toolfault_dashboard.analysis.comparisons.gates import GateError, parse_gate
    from toolfault_dashboard.exports.comparisons import overlap_sentence

    _one_of(
        before=before is not None and after is not None,
        change=change,
        variants=variants,
        releases=releases,
    )
    if format not in FORMATS:
        raise WronglyUsed(f"Write --format as one of {', '.join(FORMATS)}.")
    chosen = _metrics(metrics or [])
    try:
        gates = [parse_gate(text) for text in fail_if or ()]
    except GateError as error:
        raise WronglyUsed(str(error)) from None
    with _errors_are_two(), reading(context, database_url, project, query) as (conn, scope):
        found = _compared(conn, scope, before, after, change, variants or (), releases or ())
    _print(found, chosen, format)
    overlap = overlap_sentence(found)
    if overlap and (gates or format in {"json", "csv"}):
        typer.echo(f"toolfault: {overlap}", err=True)
    shut = [gate.text for gate in gates if gate.holds(found.effect, found.codes)]
    for text in shut:
        typer.echo(f"toolfault: the gate is shut: {text}", err=True)
    raise typer.Exit(1 if shut else 0)


@contextmanager
def _errors_are_two() -> Iterator[None]:
    # A CI job must tell a shut gate (1) from a comparison that never took place.
    try:
        yield
    except Failed as error:
        raise WronglyUsed(str(error)) from None


def _one_of(**ways: object) -> None:
    if sum(1 for way in ways.values() if way) != 1:
        raise WronglyUsed("Give --before and --after, or --change, or --variants, or --releases.")


def _metrics(names: Sequence[str]) -> list[str]:
    from toolfault_dashboard.analysis.comparisons.metrics import METRICS

    known = [metric.name for metric in METRICS]
    for name in names:
        if name not in known:
            raise WronglyUsed(f"Write --metric as one of {', '.join(known)}.")
    return [str(name) for name in known if not names or name in names]


def _compared(
    conn: Connection,
    scope: Scope,
    before: str | None,
    after: str | None,
    change: str | None,
    variants: Sequence[str],
    releases: Sequence[str],
) -> Comparison:
    from toolfault_dashboard import queries
    from toolfault_dashboard.search import Clause, Pattern

    if change is not None:
        return queries.change_comparison(conn, scope, _change(conn, scope, change))
    if variants or releases:
        key, names = ("variant", variants) if variants else ("release", releases)
        texts = [str(Clause(key, (Pattern((name,)),))) for name in names]
        return _of_queries(conn, scope, texts, tuple(names))
    return _of_queries(conn, scope, [before or "", after or ""], ("before", "after"))


def _of_queries(
    conn: Connection, scope: Scope, texts: Sequence[str], labels: Sequence[str]
) -> Comparison:
    from toolfault_dashboard import queries

    left, right = (queries.cohort_scope(scope, text) for text in texts)
    return queries.comparison(conn, left, right, labels=(labels[0], labels[1]))


def _change(conn: Connection, scope: Scope, wanted: str) -> ChangeRow:
    from toolfault_dashboard import queries

    known = queries.changes(conn, scope)
    found = [each for each in known if wanted in (each.event_id, each.label)]
    if not found and wanted != "last":
        detected = queries.detected_changes(conn, scope)
        found = [each for each in detected if wanted in (each.event_id, each.label)]
    if wanted == "last":
        found = list(known[:1])
    if len(found) == 1:
        return found[0]
    if not found:
        raise Failed("There is no such change; `toolfault change list` names them.")
    raise Failed("Several changes have this label; name one by its event id.")


def _print(found: Comparison, metrics: Sequence[str], format: str) -> None:  # noqa: A002
    import sys
    from dataclasses import replace

    from toolfault_dashboard.analysis.comparisons.effect import MetricEffect
    from toolfault_dashboard.exports import table_stream, write
    from toolfault_dashboard.exports.comparisons import (
        HEADINGS,
        TRIAL_HEADINGS,
        TRIAL_TITLE,
        balance_sentence,
        comparison_lines,
        comparison_markdown,
        overlap_sentence,
        trial_lines,
    )
    from toolfault_dashboard.mcp.tools import comparison_text

    kept = tuple(metric for metric in found.effect.metrics if metric.metric in metrics)
    found = replace(found, effect=replace(found.effect, metrics=kept))
    if found.trial is not None:
        arms = tuple(each for each in found.trial.effects if each.metric in metrics)
        found = replace(found, trial=replace(found.trial, effects=arms))
    if format == "json":
        typer.echo(json.dumps(asdict(found), ensure_ascii=False))
    elif format == "csv":
        for chunk in write(table_stream(kept, MetricEffect), "csv"):
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
    elif format == "agent":
        typer.echo(comparison_text(found))
    elif format == "markdown":
        typer.echo(comparison_markdown(found), nl=False)
    else:
        from toolfault_dashboard.cli.tables import print_table

        effect = found.effect
        title = f"{effect.before.label} and {effect.after.label}: {effect.verdict}"
        print_table(title, list(HEADINGS), comparison_lines(effect))
        if overlap := overlap_sentence(found):
            typer.echo(overlap)
        if found.trial is not None:
            print_table(TRIAL_TITLE, list(TRIAL_HEADINGS), trial_lines(found.trial))
            typer.echo(balance_sentence(found.trial))
        if found.codes:
            print_table(
                "Codes",
                ["code", "before", "after", "difference", "verdict"],
                [
                    [row.code, row.before.count, row.after.count, f"{row.difference:+.2%}",
                     row.verdict]
                    for row in found.codes
                ],
            )  # fmt: skip
