"""One failure: what each audience was told, what was wrong, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated as Doc
from typing import ClassVar, Final
from urllib.parse import quote

from fastapi import APIRouter, HTTPException
from starlette.responses import Response

from toolfault_dashboard import queries
from toolfault_dashboard.access.policy import allows, sees
from toolfault_dashboard.analysis.fixes.inference import is_stand_in
from toolfault_dashboard.formats import duration, when
from toolfault_dashboard.glossary import AUDIENCES, CATEGORIES, CODES, REMEDIES
from toolfault_dashboard.pages.chains.steps import Step, outcome_meaning, steps_of
from toolfault_dashboard.pages.failures.kinds_table import Deciding, deciding, done
from toolfault_dashboard.pages.fixes.fix_next import near_misses
from toolfault_dashboard.pages.shared.ask import Ask, Asked, curl, python
from toolfault_dashboard.pages.shared.frame import Context
from toolfault_dashboard.pages.shared.lines import exactly
from toolfault_dashboard.pages.shared.table import Column, Drawn, Table
from toolfault_dashboard.queries.rows import FailureDetail
from toolfault_dashboard.render import pretty_json
from toolfault_dashboard.search import parse
from toolfault_dashboard.writes.kind_states import history_of
from toolfault_dashboard.writes.picked_fixes import picked_fixes

__all__ = ["ISSUES", "router"]


@dataclass(frozen=True, slots=True)
class AudienceText:
    """One of the three renderings of a failure."""

    audience: Doc[str, "`user`, `llm` or `system`."]
    title: Doc[str, "Who reads it, in words."]
    purpose: Doc[str, "Where it appears."]
    text: Doc[str | None, "The text exactly as stored; None where there is none."]
    shown: Doc[bool, "Whether the reader's role may see it."]
    primary: Doc[bool, "Whether the failure is for this audience."]
    hides: Doc[tuple[str, ...], "What this failure holds that this audience is not told."]


@dataclass(frozen=True, slots=True)
class Remedy:
    """A near miss: what would have accepted the value."""

    field: Doc[str, "The field."]
    pattern: Doc[str, "The argument to mend as a pattern, as Fix next names it; empty: unknown."]
    name: Doc[str, "The remedy as it is stored."]
    words: Doc[str, "The remedy, in words."]
    href: Doc[str, "Fix next for the tool; empty if the reader may not see it."]
    form: Doc[str, "Where to add it to Fix next; empty if it stands there or may not be added."]
    added: Doc[str, "Who added it to Fix next; empty if nobody did."]


@dataclass(frozen=True, slots=True)
class FailureContext(Context):
    """What `failure.html` shows."""

    template: ClassVar[str] = "failure.html"

    detail: Doc[FailureDetail, "Everything stored that the reader may see."]
    headline: Doc[str, "The text of the highest audience the reader may see."]
    texts: Doc[tuple[AudienceText, ...], "The three renderings."]
    code_meaning: Doc[str, "What the code means, or whose it is."]
    category_meaning: Doc[str, "What the category means."]
    facts: Doc[
        tuple[tuple[str, str, str], ...], "Label, value and address (or empty) of each fact."
    ]
    steps: Doc[tuple[Step, ...], "Its chain."]
    outcome_meaning: Doc[str, "What the outcome of its chain means; empty without one."]
    chain_href: Doc[str, "Address of the chain; empty outside a conversation."]
    newer: Doc[str, "The next newer failure of the list; empty at the end."]
    older: Doc[str, "The next older failure of the list; empty at the end."]
    back: Doc[str, "The list it was opened from."]
    similar: Doc[str, "The failures of the same signature; empty without one."]
    remedies: Doc[tuple[Remedy, ...], "Near misses of its issues."]
    copies: Doc[tuple[tuple[str, str, str], ...], "The failure elsewhere: id, label, text to copy."]
    payload: Doc[str, "What the reader may see, as JSON."]
    issues: Doc[Drawn, "Its issues."]
    issues_csv: Doc[str, "Its issues as CSV."]
    deciding: Doc[Deciding | None, "What can be decided about its kind; None if nothing."]
    history: Doc[
        tuple[tuple[int, str, str], ...], "What was decided: when, by whom, and what in words."
    ]
    done: Doc[str, "What was just decided, as a sentence; else empty."]
    values_withheld: Doc[bool, "Whether its sender told type and size in the place of values."]


router = APIRouter()

ISSUES: Final = Table(
    Column("field", "Field", "whole_code", nothing="–"),
    Column("code", "Code", "whole_code"),
    Column("message", "Message", style="cell-text", label="", term=""),
    Column("expected", "Expected", "whole_code", nothing="–"),
    Column("received", "Received", "received"),
    Column("near_miss", "Near miss", "near_miss"),
    file="issues", named="issues",
)  # fmt: skip
_ORDER: Final = ("user", "llm", "system")
Fact = tuple[str, str, str]


@router.get("/failures/{event_id}", name="failure")
def failure(ask: Asked, event_id: str) -> Response:
    """Render one failure; previous and next follow the list it was opened from."""
    detail = queries.failure_detail(ask.conn, ask.scope, event_id)
    if detail is None:
        raise HTTPException(404, "There is no failure with this id in this project.")
    row = detail.row
    beside = queries.calls_beside(ask.conn, ask.scope, detail.chain) if detail.chain else None
    context = FailureContext(
        detail=detail,
        issues=ISSUES.drawn(detail.issues),
        headline=row.text or "",
        texts=_texts(ask, detail),
        code_meaning=CODES.get(row.code, "") or _whose_code(detail),
        category_meaning=CATEGORIES.get(row.category or "", ""),
        facts=_facts(ask, detail),
        steps=steps_of(ask, detail.chain, beside, here=row.event_id)
        if detail.chain and beside
        else (),
        outcome_meaning=outcome_meaning(row.chain_outcome or "", beside) if beside else "",
        chain_href=ask.link(f"/chains/{row.chain_id}") if row.chain_id else "",
        newer=ask.link(f"/failures/{detail.newer}") if detail.newer else "",
        older=ask.link(f"/failures/{detail.older}") if detail.older else "",
        back=ask.link("/failures"),
        similar=ask.link(
            "/failures",
            exactly(parse(""), "signature", detail.signature.fingerprint),
            window="all",
        )
        if detail.signature
        else "",
        remedies=_remedies(ask, detail),
        copies=_copies(ask, detail),
        payload=pretty_json(_payload(detail)),
        issues_csv=ask.link("/issues.csv", exactly(parse(""), "event", row.event_id), window="all"),
        deciding=deciding(ask, event=row.event_id) if detail.signature else None,
        history=_history(ask, detail),
        done=done(ask),
        values_withheld=_withholds_values(detail),
    )
    return ask.render(context, title=f"{row.code} in {row.tool}")


def _history(ask: Ask, detail: FailureDetail) -> tuple[tuple[int, str, str], ...]:
    """Return what people decided about the kind, newest first; for those who may decide too."""
    if ask.project is None or detail.signature is None or not allows(ask.viewer.role, "developer"):
        return ()
    acts = history_of(ask.conn, ask.project.id, detail.signature.fingerprint)
    return tuple((act.at, act.actor, _in_words(act.detail)) for act in acts)


def _in_words(changed: Mapping[str, object]) -> str:
    """Say what an act changed: its names and values, moments as dates."""
    left_out = {"fingerprint", "tool", "code", "fixed_by", "ignored_at"}
    words = [
        f"{name.replace('_', ' ')} {_written(name, value)}"
        for name, value in changed.items()
        if name not in left_out and (value is not None or name in {"owner", "note"})
    ]
    return ", ".join(words)


def _written(name: str, value: object) -> str:
    if value is None:
        return "removed"
    moment = name in {"fixed_at", "ignored_until"} and isinstance(value, int)
    return when(value) + " UTC" if moment and isinstance(value, int) else str(value)


def _whose_code(detail: FailureDetail) -> str:
    return "A code of the server's rules." if detail.derived_by else "A code of the sender's own."


def _remedies(ask: Ask, detail: FailureDetail) -> tuple[Remedy, ...]:
    """Return the near misses, each with its place on Fix next where the role may see that."""
    found = near_misses(detail)
    may = ask.project is not None and allows(ask.viewer.role, "developer")
    picked = picked_fixes(ask.conn, ask.project.id) if found and may and ask.project else ()
    added = {(each.tool, each.field, each.remedy): each.added_by for each in picked}
    tool = detail.row.tool
    href = ask.link("/fix-next", exactly(parse(""), "tool", tool), window="") if may else ""
    return tuple(
        Remedy(
            field=each.issue.field,
            pattern=each.field,
            name=each.remedy,
            words=REMEDIES.get(each.remedy, each.remedy),
            href=href,
            form=ask.link("/fix-next", "", window="")
            if may and each.field and (tool, each.field, each.remedy) not in added
            else "",
            added=added.get((tool, each.field, each.remedy), ""),
        )
        for each in found
    )


def _copies(ask: Ask, detail: FailureDetail) -> tuple[tuple[str, str, str], ...]:
    """Return the failure for other tools: id, label and text."""
    event_id = detail.row.event_id
    url = ask.request.url
    address = f"{url.scheme}://{url.netloc}/api/v1/failures/{event_id}"
    query = (
        str(exactly(parse(""), "signature", detail.signature.fingerprint))
        if detail.signature
        else f"event:{event_id}"
    )
    return (
        ("copy-query", "Query for failures of its kind", query),
        ("copy-curl", "curl", curl(address)),
        ("copy-python", "Python", python(address)),
    )


def _trace_link(template: str, detail: FailureDetail) -> str:
    """Return the address of the trace elsewhere; nothing without a template or a trace.

    Ids are hexadecimal by their standard but come from outside, so they are quoted.
    """
    if not template or not detail.trace_id:
        return ""
    return template.replace("{trace_id}", quote(detail.trace_id, safe="")).replace(
        "{span_id}", quote(detail.span_id or "", safe="")
    )


def _payload(detail: FailureDetail) -> dict[str, object]:
    """Return what the reader may see as plain data; the chain has its own page."""
    everything = asdict(detail)
    everything.pop("chain")
    row = everything.pop("row")
    return {
        name: value
        for name, value in (row | everything).items()
        if value not in (None, "", (), [], {}) and name not in ("text", "newer", "older")
    }


def _is_of_span(detail: FailureDetail) -> bool:
    """Say whether a failure was made of a span, which does not say whom its text was told."""
    return detail.derived_by is not None and detail.span_id is not None


def _texts(ask: Ask, detail: FailureDetail) -> tuple[AudienceText, ...]:
    highest = _ORDER.index(sees(ask.viewer.role))
    stored = {"user": detail.text_user, "llm": detail.text_llm, "system": detail.text_system}
    # A transcript or span holds one text; nobody was told what the server made of it.
    told = ("llm",) if detail.derived_by else _ORDER
    of_span = ("What the span says", "The model may have read it, or another text, or none.")
    titles = {**AUDIENCES, "llm": of_span} if _is_of_span(detail) else AUDIENCES
    return tuple(
        AudienceText(
            audience=name,
            title=titles[name][0],
            purpose=titles[name][1],
            text=stored[name],
            shown=_ORDER.index(name) <= highest,
            primary=detail.row.audience == name,
            hides=() if detail.derived_by else _hidden_from(name, detail),
        )
        for name in told
    )


def _hidden_from(audience: str, detail: FailureDetail) -> tuple[str, ...]:
    """Name what this failure holds that *audience* is never told.

    Only parts the reader can see are named: to say that something exists would tell it.
    """
    received = bool(detail.received or any(issue.received for issue in detail.issues))
    held: list[tuple[bool, str, tuple[str, ...]]] = [
        (True, "the code", ("user",)),
        (received, "the received value", ("user",)),
        (bool(detail.snippet), "the snippet", ("user",)),
        (bool(detail.retry_hint), "the hint", ("user",)),
        (bool(detail.retry_context), "the retry context", ("user",)),
        (bool(detail.reason), "the reason", ("user", "llm")),
        (bool(detail.exception_type), "the exception", ("user", "llm")),
        (bool(detail.traceback), "the traceback", ("user", "llm")),
    ]
    return tuple(name for present, name, hidden in held if present and audience in hidden)


def _withholds_values(detail: FailureDetail) -> bool:
    """Return whether the sender told type and size in the place of a value."""
    told = [(issue.received, issue.received_type) for issue in detail.issues]
    told += [(detail.received, detail.received_type), (detail.snippet, "str")]
    return any(is_stand_in(received, of) for received, of in told)


def _facts(ask: Ask, detail: FailureDetail) -> tuple[Fact, ...]:
    """Return the facts beside the texts; those without a value are left out."""
    row = detail.row

    def narrowed(key: str, value: str | None) -> str:
        return ask.link("/failures", exactly(ask.query, key, value)) if value else ""

    trace = _trace_link(ask.services.settings.trace_url, detail)
    facts: list[Fact] = [
        ("Duration", duration(row.duration_ms) if row.duration_ms is not None else "", ""),
        (
            "Conversation",
            row.conversation or "",
            ask.link("/conversation", name=row.conversation) if row.conversation else "",
        ),
        ("Model", row.model or "", narrowed("model", row.model)),
        ("Agent", row.agent or "", narrowed("agent", row.agent)),
        ("Release", row.release or "", narrowed("release", row.release)),
        ("Environment", row.environment or "", narrowed("environment", row.environment)),
        ("Variant", row.variant or "", narrowed("variant", row.variant)),
        ("Framework", row.framework or "", narrowed("framework", row.framework)),
        ("Side", detail.side or "", narrowed("side", detail.side)),
        ("Conversation named by", _named_by(detail), ""),
        ("Called as", _differs(detail.tool_requested, row.tool), ""),
        ("Retryable", {True: "yes", False: "no", None: ""}[detail.retryable], ""),
        ("Detection", "" if row.detection == "explicit" else row.detection, ""),
        ("Code derived by", detail.derived_by or "", ""),
        ("Validation", _joined(detail.validation_mode, detail.validation_version), ""),
        ("Exception", _joined(detail.exception_module, detail.exception_type, "."), ""),
        ("Reason", detail.reason or "", ""),
        ("Phase", detail.phase or "", ""),
        ("User", detail.user or "", ""),
        ("Call id", detail.call_id or "", ""),
        ("Turn", detail.turn or "", ""),
        ("Trace", detail.trace_id or "", trace),
        ("Span", detail.span_id or "", trace),
        ("Event id", row.event_id, ""),
        ("Changed on arrival", ", ".join(detail.flags), ""),
    ]
    facts.extend((f"tag {name}", str(value), "") for name, value in detail.tags.items())
    return tuple(fact for fact in facts if fact[1])


def _named_by(detail: FailureDetail) -> str:
    """Return what named the conversation, where that was not its own id."""
    if detail.row.conversation is None:
        return "nothing: the call cannot be chained"
    return "" if detail.conversation_rung == "explicit" else detail.conversation_rung


def _differs(requested: str | None, tool: str) -> str:
    return requested if requested and requested != tool else ""


def _joined(first: str | None, second: str | None, between: str = " ") -> str:
    return between.join(part for part in (first, second) if part)
