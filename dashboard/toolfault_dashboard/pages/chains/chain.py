"""One chain: every call in order, what the model was told, and what it changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated as Doc
from typing import ClassVar

from fastapi import APIRouter, HTTPException
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.formats import duration, plural
from toolfault_dashboard.pages.chains.steps import Step, outcome_meaning, steps_of
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.frame import Context, Link
from toolfault_dashboard.pages.shared.lines import exactly
from toolfault_dashboard.queries.rows import ChainRow
from toolfault_dashboard.search import parse

__all__ = ["router"]


@dataclass(frozen=True, slots=True)
class ChainContext(Context):
    """What `chain.html` shows."""

    template: ClassVar[str] = "chain.html"

    chain: Doc[ChainRow, "What is stored."]
    steps: Doc[tuple[Step, ...], "Its calls in order."]
    tellings: Doc[
        tuple[Link, ...], "What the model was told: whole, or against the failure before it."
    ]
    outcome_meaning: Doc[str, "What the outcome means, in a sentence."]
    facts: Doc[
        tuple[tuple[str, str, str], ...], "Label, value and address (or empty) of each fact."
    ]
    notes: Doc[tuple[str, ...], "What is remarkable about it, in sentences."]
    csv: Doc[str, "The failures of the chain as CSV."]
    conversation: Doc[str, "Its conversation, with the calls of all tools."]
    back: Doc[Link, "The list of chains."]


router = APIRouter()


@router.get("/chains/{chain_id}", name="chain")
def chain(ask: Asked, chain_id: str) -> Response:
    """Render one chain."""
    detail = queries.chain_detail(ask.conn, ask.scope, chain_id)
    if detail is None:
        raise HTTPException(404, "There is no chain with this id in this project.")
    row = detail.chain
    compared = ask.request.query_params.get("told") == "diff"
    in_conversation = exactly(parse(""), "conversation", row.conversation)
    beside = queries.calls_beside(ask.conn, ask.scope, detail)
    steps = steps_of(ask, detail, beside, compared=compared)
    context = ChainContext(
        chain=row,
        steps=steps,
        tellings=(
            Link("Whole texts", ask.here(told=""), not compared),
            Link("Differences", ask.here(told="diff"), compared),
        )
        if row.failures > 1
        else (),
        outcome_meaning=outcome_meaning(row.outcome, beside),
        facts=_facts(ask, row),
        notes=_notes(row, steps),
        csv=ask.link("/failures.csv", exactly(in_conversation, "tool", row.tool), window="all"),
        conversation=ask.link("/conversation", name=row.conversation),
        back=Link("Round trips", ask.link("/round-trips"), current=False),
    )
    return ask.render(context, title=f"Chain of {row.tool}")


def _facts(ask: Ask, row: ChainRow) -> tuple[tuple[str, str, str], ...]:
    def narrowed(key: str, value: str | None) -> str:
        return ask.link("/failures", exactly(ask.query, key, value)) if value else ""

    timed = row.started_at is not None
    facts = (
        ("Time lost", duration(row.time_lost_ms) if timed and row.time_lost_ms else "", ""),
        ("Tokens lost", str(row.tokens_lost) if row.tokens_lost else "", ""),
        ("First code", row.first_code, narrowed("own_code", row.first_code)),
        ("First field", row.first_field or "", narrowed("field", row.first_field)),
        ("Conversation", row.conversation, ask.link("/conversation", name=row.conversation)),
        ("Model", row.model or "", narrowed("model", row.model)),
        ("Agent", row.agent or "", narrowed("agent", row.agent)),
        ("Release", row.release or "", narrowed("release", row.release)),
        ("Variant", row.variant or "", narrowed("variant", row.variant)),
    )
    return tuple(fact for fact in facts if fact[1])


def _notes(row: ChainRow, steps: tuple[Step, ...]) -> tuple[str, ...]:
    notes: list[str] = []
    # After another call the same arguments may be right: a file that was read first, say.
    blind = sum(
        step.attempt.identical and not step.between and not step.attempt.success for step in steps
    )
    if row.first_retry_fix:
        others = sum(len(step.between) + step.more_between for step in steps)
        notes.append(
            f"The first retry was right, after {plural(others, 'call')} of other tools."
            if others
            else "The first retry was right: the message was enough."
        )
    if blind:
        notes.append(
            f"{plural(blind, 'retry', 'retries')} repeated arguments that had failed before, with"
            " no other call between, and failed again: the model did not understand what to change."
        )
    if row.serial_discovery:
        notes.append(
            "Serial discovery: a later failure named a field that no earlier one did. Reporting"
            " all issues at once would have saved a round trip."
        )
    if row.repeat_confusion:
        notes.append("The same field failed with the same code again: the message did not help.")
    return tuple(notes)
