"""What people decide about kinds of failure: acknowledged, fixed, ignored; an owner and a note.

This module alone writes ``kind_state``. What state a kind is in at a moment is worked out when it
is read (`toolfault_dashboard.search.states`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from sqlalchemy import Connection, Engine, delete, insert, select

from toolfault_collector.admin.audit import note
from toolfault_collector.admin.projects import lock_project
from toolfault_collector.storage.database.engine import write_transaction
from toolfault_collector.storage.tables import audit_log, kind_state, signature
from toolfault_dashboard.queries.rows import ChangeRow
from toolfault_dashboard.search.states import MOST_IGNORED

__all__ = [
    "DECISIONS",
    "MOST_AT_ONCE",
    "Decided",
    "Decision",
    "KindAct",
    "decide",
    "fixed_by",
    "history_of",
    "state_of",
]

Decided = Literal["open", "acknowledged", "fixed", "ignored"]
DECISIONS: Final[tuple[Decided, ...]] = get_args(Decided)
"""States that a person can give; ``new`` and ``regressed`` come by themselves."""

MOST_AT_ONCE: Final = 500
_LONGEST_OWNER: Final = 128
_LONGEST_NOTE: Final = 2_000


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be stored of kinds; what is None stays as it is.

    Attributes:
        state: The state they get.
        owner: Who looks after them; "" for nobody.
        note: Why, in words; "" removes it.
        fixed_at: Of ``fixed``: since when, in microseconds; None for now.
        fixed_by: Of ``fixed``: event id of the change that fixed them.
        fixed_label: Its label.
        fixed_release: Of ``fixed``: the release with the fix; failures of older ones say nothing.
        ignored_until: Of ``ignored``: the moment at which that ends, in microseconds.
        ignored_count: Of ``ignored``: further failures that end it, 1 to 10,000.
    """

    state: Decided | None = None
    owner: str | None = None
    note: str | None = None
    fixed_at: int | None = None
    fixed_by: str | None = None
    fixed_label: str | None = None
    fixed_release: str | None = None
    ignored_until: int | None = None
    ignored_count: int | None = None


@dataclass(frozen=True, slots=True)
class KindAct:
    """One row of a kind's history."""

    at: int
    actor: str
    detail: dict[str, Any]


def decide(
    engine: Engine,
    project_id: int,
    fingerprints: Collection[str],
    decision: Decision,
    *,
    actor: str,
    now: int,
) -> int:
    """Store a decision about kinds of failure and write each into the audit log.

    Args:
        engine: A writable engine.
        project_id: The project.
        fingerprints: The kinds, by their signature.
        decision: What to store.
        actor: Who decides.
        now: Microseconds since the epoch.

    Returns:
        How many kinds are different from before.

    Raises:
        ValueError: The decision cannot be stored; the text says why.
        LookupError: The project has no kind of one of the fingerprints.
    """
    wanted = sorted(set(fingerprints))
    _check(wanted, decision, now)
    with write_transaction(engine) as conn:
        lock_project(conn, project_id)
        known = _known(conn, project_id, wanted)
        unknown = [each for each in wanted if each not in known]
        if unknown:
            raise LookupError(f"There is no kind of failure {unknown[0]!r} in this project.")
        changed = 0
        for fingerprint in wanted:
            before = state_of(conn, project_id, fingerprint)
            after = _after(before, decision, now)
            if after == before:
                continue
            changed += 1
            key = {"project_id": project_id, "fingerprint": fingerprint}
            mine = (kind_state.c[name] == value for name, value in key.items())
            conn.execute(delete(kind_state).where(*mine))
            conn.execute(
                insert(kind_state).values(
                    **key, **after, changed_by=actor[:_LONGEST_OWNER], changed_at=now
                )
            )
            tool, code = known[fingerprint]
            told = {name: value for name, value in after.items() if before.get(name) != value}
            note(
                conn, "kind_changed", actor=actor, project_id=project_id, at=now,
                fingerprint=fingerprint, tool=tool, code=code, **told,
            )  # fmt: skip
    return changed


def fixed_by(change: ChangeRow, release: str | None = None) -> Decision:
    """Return the decision that kinds are fixed since *change*, by it.

    Args:
        change: A change of the project, recorded or detected.
        release: The release that has the fix; None for that of the change, if it is one.
    """
    named = change.name or change.label
    return Decision(
        state="fixed",
        fixed_at=change.occurred_at,
        fixed_by=None if change.is_detected else change.event_id,
        fixed_label=change.label,
        fixed_release=release or (named[:128] if change.kind == "release" else None),
    )


def state_of(conn: Connection, project_id: int, fingerprint: str) -> dict[str, Any]:
    """Return what is stored of a kind by column; nothing where nobody ever touched it."""
    row = conn.execute(
        select(*(kind_state.c[name] for name in _STORED)).where(
            kind_state.c.project_id == project_id, kind_state.c.fingerprint == fingerprint
        )
    ).one_or_none()
    return {} if row is None else dict(row._mapping)  # noqa: SLF001 - its public name


def history_of(
    conn: Connection, project_id: int, fingerprint: str, *, limit: int = 20
) -> tuple[KindAct, ...]:
    """Return what the audit log says of a kind, newest first."""
    if not state_of(conn, project_id, fingerprint):
        return ()  # the log need not be read
    log = audit_log.c
    rows = conn.execute(
        select(log.occurred_at, log.actor, log.detail)
        .where(
            log.project_id == project_id,
            log.action == "kind_changed",
            log.detail["fingerprint"].as_string() == fingerprint,
        )
        .order_by(log.id.desc())
        .limit(limit)
    )
    return tuple(KindAct(*row) for row in rows)


_OF_FIX: Final = ("fixed_at", "fixed_by", "fixed_label", "fixed_release")
_OF_IGNORE: Final = ("ignored_at", "ignored_until", "ignored_count")
_STORED: Final = ("state", "owner", "note", *_OF_FIX, *_OF_IGNORE)


def _after(before: dict[str, Any], decision: Decision, now: int) -> dict[str, Any]:
    after = dict.fromkeys(_STORED) | before
    after["state"] = after["state"] or "open"
    for name in ("owner", "note"):
        given = getattr(decision, name)
        if given is not None:
            after[name] = given or None
    if decision.state is None:
        return after
    after |= dict.fromkeys((*_OF_FIX, *_OF_IGNORE)) | {"state": decision.state}
    if decision.state == "fixed":
        after |= {name: getattr(decision, name) for name in _OF_FIX}
        after["fixed_at"] = now if decision.fixed_at is None else decision.fixed_at
    if decision.state == "ignored":
        after |= {"ignored_until": decision.ignored_until, "ignored_count": decision.ignored_count}
        after["ignored_at"] = now
    return after


def _known(
    conn: Connection, project_id: int, fingerprints: Sequence[str]
) -> dict[str, tuple[str, str]]:
    table = signature.c
    rows = conn.execute(
        select(table.fingerprint, table.tool, table.code).where(
            table.project_id == project_id, table.fingerprint.in_(fingerprints)
        )
    )
    return {row.fingerprint: (row.tool, row.code) for row in rows}


def _check(fingerprints: Sequence[str], decision: Decision, now: int) -> None:
    if not fingerprints:
        raise ValueError("Choose at least one kind of failure.")
    if len(fingerprints) > MOST_AT_ONCE:
        raise ValueError(f"At most {MOST_AT_ONCE} kinds can be changed at once.")
    if decision == Decision():
        raise ValueError("Say what to change: a state, an owner or a note.")
    for text, longest, name in (
        (decision.owner, _LONGEST_OWNER, "owner"),
        (decision.note, _LONGEST_NOTE, "note"),
        (decision.fixed_release, _LONGEST_OWNER, "release"),
    ):
        if text is not None and (len(text) > longest or not _writable(text)):
            raise ValueError(f"The {name} has at most {longest} characters, without control codes.")
    if decision.state != "fixed" and any(getattr(decision, name) is not None for name in _OF_FIX):
        raise ValueError("A change, a release or a moment of the fix belongs to the state fixed.")
    ends = (decision.ignored_until, decision.ignored_count)
    if decision.state != "ignored" and ends != (None, None):
        raise ValueError("An end of ignoring belongs to the state ignored.")
    if decision.ignored_until is not None and decision.ignored_until <= now:
        raise ValueError("The moment at which ignoring ends has to lie ahead.")
    if decision.ignored_count is not None and not 1 <= decision.ignored_count <= MOST_IGNORED:
        raise ValueError(f"Ignore a kind for 1 to {MOST_IGNORED:,} further failures.")


def _writable(text: str) -> bool:
    return all(each.isprintable() or each in "\n\r\t" for each in text)
