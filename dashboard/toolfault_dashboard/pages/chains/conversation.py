"""One conversation: the calls of all tools in order, failures among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from typing import Annotated as Doc

from fastapi import APIRouter, HTTPException, Query
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.formats import plural
from toolfault_dashboard.pages.chains.steps import after, failure_link, started
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.frame import Context, Link
from toolfault_dashboard.pages.shared.lines import exactly
from toolfault_dashboard.queries.rows import ConversationCall, ConversationDetail
from toolfault_dashboard.search import parse

__all__ = ["router"]


@dataclass(frozen=True, slots=True)
class ConversationStep:
    """One call of a conversation on its timeline."""

    call: Doc[ConversationCall, "What is stored."]
    number: Doc[int, "Position in the conversation, from 1."]
    href: Doc[str, "The failure; empty for a success."]
    chain_href: Doc[str, "Its chain; empty for a call of none."]
    started: Doc[int | None, "When it started, microseconds since the epoch."]
    after: Doc[str, "How long after the end of the call before it; empty if unknown."]


@dataclass(frozen=True, slots=True)
class ConversationContext(Context):
    """What `conversation.html` shows."""

    template: ClassVar[str] = "conversation.html"

    detail: Doc[ConversationDetail, "What is stored."]
    steps: Doc[tuple[ConversationStep, ...], "One page of its calls in order."]
    lede: Doc[str, "How many calls, failures and chains it has."]
    notes: Doc[tuple[str, ...], "What is not listed, in sentences."]
    failures: Doc[str, "Its failures as a list."]
    csv: Doc[str, "Its failures as a file."]
    earlier: Doc[str, "The page before; empty on the first."]
    later: Doc[str, "The next page; empty on the last."]
    back: Doc[Link, "The list of failures."]


router = APIRouter()

_MOST_PAGES = 100_000


@router.get("/conversation", name="conversation")
def conversation(
    ask: Asked, name: str = "", page: Annotated[int, Query(ge=1, le=_MOST_PAGES)] = 1
) -> Response:
    """Render one page of the calls of a conversation.

    The name is a parameter and no part of the path: senders may call it ``..`` or ``a/b``.
    """
    detail = None
    if "\0" not in name:  # which PostgreSQL refuses, and no conversation is called so
        detail = queries.conversation_detail(ask.conn, ask.scope, name, page=page)
    if detail is None:
        raise HTTPException(404, "There is no conversation of this name in this project.")
    own = exactly(parse(""), "conversation", name)
    context = ConversationContext(
        detail=detail,
        steps=_steps(ask, detail, page),
        lede=f"{plural(detail.calls, 'call')}, {plural(detail.failures, 'failure')},"
        f" {plural(detail.chains, 'chain')}.",
        notes=_notes(detail),
        failures=ask.link("/failures", own, window="all"),
        csv=ask.link("/failures.csv", own, window="all"),
        earlier=ask.here(page=str(page - 1)) if page > 1 else "",
        later=ask.here(page=str(page + 1)) if page < detail.pages else "",
        back=Link("Failures", ask.link("/failures"), current=False),
    )
    return ask.render(context, title=f"Conversation {name}")


def _steps(ask: Ask, detail: ConversationDetail, page: int) -> tuple[ConversationStep, ...]:
    steps: list[ConversationStep] = []
    before: ConversationCall | None = None
    for number, call in enumerate(detail.rows, (page - 1) * queries.CALLS_PER_PAGE + 1):
        steps.append(
            ConversationStep(
                call=call,
                number=number,
                href=failure_link(ask, call),
                chain_href=ask.link(f"/chains/{call.chain_id}") if call.chain_id else "",
                started=started(call),
                after=after(before, call),
            )
        )
        before = call
    return tuple(steps)


def _notes(detail: ConversationDetail) -> tuple[str, ...]:
    if detail.only_counted:
        more = plural(detail.only_counted, "more call")
        return (f"{more} were counted and not sent one by one, or are not kept.",)
    if not detail.ended and not detail.imported:
        return ("Calls that succeeded are here only if the agent sent them one by one.",)
    return ()
