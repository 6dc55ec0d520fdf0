"""What a reader decides about kinds of failure, from their list or from the page of a failure."""

from __future__ import annotations

from typing import Final, cast, get_args

from fastapi import APIRouter, HTTPException
from starlette.responses import RedirectResponse, Response

from toolfault_collector.clock import DAY_US
from toolfault_dashboard import queries
from toolfault_dashboard.pages.failures.kinds_table import ENDS, kept_kinds
from toolfault_dashboard.pages.shared.ask import Ask, Asked
from toolfault_dashboard.pages.shared.forms import Submitted
from toolfault_dashboard.pages.shared.numbered import Number
from toolfault_dashboard.search import parse
from toolfault_dashboard.writes.kind_states import Decided, Decision, decide, fixed_by

__all__ = ["BOX", "router"]

router = APIRouter()

BOX: Final = "kind."
"""What the name of a field begins with that chooses a kind; its fingerprint follows."""


@router.post("/kinds", name="decide_kinds")
def decide_kinds(ask: Asked, form: Submitted, page: Number = 1) -> Response:
    """Store what was decided about the chosen kinds and go back to where that was."""
    chosen = [name.removeprefix(BOX) for name in form if name.startswith(BOX)]
    if ask.project is None:
        raise HTTPException(404, "There is no project yet.")
    try:
        changed = decide(
            ask.services.engine, ask.project.id, chosen, _decision(ask, form),
            actor=ask.viewer.name, now=ask.now,
        )  # fmt: skip
    except ValueError as error:
        raise HTTPException(422, str(error)) from None
    except LookupError as error:
        raise HTTPException(404, str(error)) from None
    event = ask.request.query_params.get("event", "")
    if event:
        back = ask.link(f"/failures/{event}", done=str(changed)) + "#kind-title"
    else:
        there = kept_kinds(ask) | {"page": str(page) if page > 1 else ""}
        back = ask.link("/failures", done=str(changed), **there)
    return RedirectResponse(back, status_code=303)


def _decision(ask: Ask, form: dict[str, str]) -> Decision:
    if form.get("set") == "owner":
        # Nobody is made the owner of many kinds by a field that was left empty.
        owner = form.get("owner", "").strip()
        if not owner:
            raise ValueError("Write the name of the owner.")
        return Decision(owner=owner)
    if form.get("set") == "words":
        return Decision(owner=form.get("owner", "").strip(), note=form.get("note", "").strip())
    state = form.get("state", "")
    if state not in get_args(Decided):
        raise ValueError("Choose what to do with the kinds.")
    if state == "fixed":
        return _fixed(ask, form.get("change", ""))
    if state == "ignored":
        return _ignored(ask, form.get("until", ""))
    return Decision(state=cast("Decided", state))


def _fixed(ask: Ask, event_id: str) -> Decision:
    if not event_id:
        return Decision(state="fixed")
    change = queries.change(ask.conn, ask.scope_of(parse("")), event_id)
    if change is None:
        raise LookupError("There is no change with this id in this project.")
    return fixed_by(change)


def _ignored(ask: Ask, until: str) -> Decision:
    if until not in ENDS:
        raise ValueError("Choose when ignoring ends.")
    if until.endswith("d"):
        end = ask.now + int(until.removesuffix("d")) * DAY_US
        return Decision(state="ignored", ignored_until=end)
    return Decision(state="ignored", ignored_count=int(until) if until else None)
