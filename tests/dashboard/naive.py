"""The query language once more, as naively as can be: Python over rows read with pandas.

It shares the parser and nothing else with the product.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final

import pandas as pd
from sqlalchemy import Connection

from toolfault_collector.clock import MINUTE_US
from toolfault_dashboard.search import TEXT, Clause, Moment, NumberRange, Pattern, Query

__all__ = ["Tables", "beside", "codes_of", "load", "matches"]

COUNTED = {"tool", "agent", "model", "release", "environment", "variant"}
OF_CALLS = COUNTED | {"conversation", "since", "until", "time"}
COLUMNS = {
    "own_code": "code",
    "conversation": "session_id",
    "exception": "exception_type",
    "event": "event_id",
} | {
    "duration": "duration_ms",
    "time": "time_source",
    "state": "kind_state",
    "owner": "kind_owner",
}


@dataclass
class Tables:
    """Everything stored for one project, as lists of plain dictionaries."""

    calls: list[dict[str, Any]]
    chains: dict[str, dict[str, Any]]
    counts: list[dict[str, Any]]
    changes: list[dict[str, Any]]
    _failures: dict[tuple[str, int], list[dict[str, Any]]] = field(default_factory=dict)

    def failures(self, query: Query, now: int) -> list[dict[str, Any]]:
        """Failed calls that match, newest first; looked through once for each query."""
        asked = str(query), now
        if asked not in self._failures:
            found = [c for c in self.calls if not c["success"] and matches(query, c, now)]
            self._failures[asked] = sorted(found, key=lambda c: (-c["occurred_at"], -c["id"]))
        return list(self._failures[asked])

    def denominators(self, query: Query, now: int) -> list[dict[str, Any]]:
        """Calls and folded successes that match what calls have."""
        kept = Query(tuple(c for c in query.clauses if c.key in OF_CALLS))
        calls = [c | {"calls": 1} for c in self.calls if matches(kept, c, now)]
        return calls + [c for c in self.counts if c["tool"] and _counted(kept, c, now)]

    def opened(self, query: Query, now: int) -> list[dict[str, Any]]:
        """Chains whose opening failure matches."""
        by_event = {c["event_id"]: c for c in self.calls}
        found = [c for c in self.chains.values() if matches(query, by_event[c["chain_id"]], now)]
        return sorted(found, key=lambda c: (-c["first_failed_at"], -c["id"]))


def _records(conn: Connection, sql: str, project: int) -> list[dict[str, Any]]:
    frame = pd.read_sql_query(sql.replace(":p", str(project)), conn)
    frame = frame.astype(object).where(frame.notna(), None)
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _decoded(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def load(conn: Connection, project: int, now: int) -> Tables:
    """Read every row of *project*."""
    calls = _records(
        conn,
        "SELECT c.*, m.digest AS message_digest, m.text AS message_text, s.fingerprint"
        " FROM tool_call c LEFT JOIN message m ON m.id = c.message_id"
        " LEFT JOIN signature s ON s.id = c.signature_id WHERE c.project_id = :p",
        project,
    )
    issues: dict[int, list[dict[str, Any]]] = {}
    for row in _records(conn, "SELECT * FROM issue WHERE project_id = :p", project):
        row["near_miss"] = _decoded(row["near_miss"]) or []
        issues.setdefault(int(row["tool_call_id"]), []).append(row)
    talks = {
        row["session_id"]: row
        for row in _records(conn, "SELECT * FROM conversation WHERE project_id = :p", project)
    }
    chains = {
        row["chain_id"]: row
        for row in _records(conn, "SELECT * FROM chain WHERE project_id = :p", project)
    }
    successes: dict[str, list[dict[str, Any]]] = {}
    for row in calls:
        row["success"] = bool(row["success"])
        row["issues"] = issues.get(int(row["id"]), [])
        row["tags"] = _decoded(row["tags"]) or {}
        told = row["conversation_rung"] or "explicit"
        row["conversation_rung"] = "none" if row["session_id"] is None else told
        if row["success"] and row["session_id"] is not None:
            successes.setdefault(row["session_id"], []).append(row)
    members: dict[str, list[dict[str, Any]]] = {}
    talking: dict[str, list[dict[str, Any]]] = {}
    for row in calls:
        talking.setdefault(row["session_id"], []).append(row)
        members.setdefault(row["chain_id"], []).append(row)
    for chain in chains.values():
        own = members[chain["chain_id"]]
        chain["outcome_now"] = _outcome(
            chain, own, talks[chain["session_id"]], successes.get(chain["session_id"], []), now
        )
        in_order = sorted(own, key=lambda call: call["attempt"])
        for place, call in enumerate(in_order):
            call["retry"] = place > 0 and not any(beside(call, each) for each in in_order[:place])
        chain["others"] = _others(chain, own, talking[chain["session_id"]])
        chain["spent"] = sum(call["retry"] for call in own) + chain["others"]
    first_seen: dict[str, int] = {}
    for row in calls:
        if not row["success"] and row["fingerprint"]:
            before = first_seen.get(row["fingerprint"], row["occurred_at"])
            first_seen[row["fingerprint"]] = min(before, row["occurred_at"])
    for row in calls:
        row["first_seen"] = first_seen.get(row["fingerprint"])
        row.setdefault("retry", False)
        opened = chains.get(row["chain_id"])
        row["chain_outcome"] = opened["outcome_now"] if opened else None
    _set_states(
        calls, _records(conn, "SELECT * FROM kind_state WHERE project_id = :p", project), now
    )
    return Tables(
        calls=calls,
        chains=chains,
        counts=_records(conn, "SELECT * FROM call_counts WHERE project_id = :p", project),
        changes=_records(conn, "SELECT * FROM change WHERE project_id = :p", project),
    )


def _set_states(calls: list[dict[str, Any]], decided: list[dict[str, Any]], now: int) -> None:
    """Give every failure the state and owner of its kind; nobody named a release or ignored one."""
    kinds = {row["fingerprint"]: row for row in decided}
    own: dict[str, list[dict[str, Any]]] = {}
    for row in calls:
        row["kind_state"], row["kind_owner"] = None, None
        if not row["success"] and row["fingerprint"]:
            own.setdefault(row["fingerprint"], []).append(row)
    for kind, failures in own.items():
        timed = [row["occurred_at"] for row in failures if row["time_source"] != "none"]
        new = bool(timed) and failures[0]["first_seen"] > now - 7 * 24 * 60 * MINUTE_US
        row = kinds.get(kind, {"state": "new" if new else "open", "owner": None})
        back = row["state"] == "fixed" and any(at > row["fixed_at"] for at in timed)
        for failure in failures:
            failure["kind_state"] = "regressed" if back else row["state"]
            failure["kind_owner"] = row["owner"]


def beside(call: Mapping[str, Any], failure: Mapping[str, Any]) -> bool:
    """Say whether the model had not seen *failure* when it issued *call*."""
    if call["turn"] is not None and failure["turn"] is not None:
        return bool(call["turn"] == failure["turn"])
    return call["time_source"] != "none" and bool(call["started_at"] < failure["occurred_at"])


def _others(chain: dict[str, Any], own: list[dict[str, Any]], talk: list[dict[str, Any]]) -> int:
    """Count the calls of other tools from the first failure of a chain to its end, 20 at most."""
    order = sorted(own, key=_place)
    first, last = order[0], order[-1]
    others = sorted(
        (
            call
            for call in talk
            if call["tool"] != chain["tool"]
            and _place(call)[:2] > _place(first)[:2]
            and not beside(call, first)
        ),
        key=_place,
    )
    number = len([call for call in others if _place(call)[:2] < _place(last)[:2]])
    of_others = (call for call in talk if call["tool"] != chain["tool"] and call["success"])
    replaced = [_place(call) for call in of_others if _helps(call, own, last)]
    if not last["success"] and replaced:
        number = len([call for call in others if _place(call) <= min(replaced)])
    return min(number, 20)


def _place(call: Mapping[str, Any]) -> tuple[int, int, str]:
    return (call["started_at"], call["seq"], call["event_id"])


def _helps(other: Mapping[str, Any], own: list[dict[str, Any]], last: Mapping[str, Any]) -> bool:
    """Say whether a success of another tool came after a chain, and not beside its last failure."""
    if _place(other)[:2] <= _place(last)[:2]:
        return False
    if other["turn"] is not None and last["turn"] is not None:
        return bool(other["turn"] != last["turn"])
    return bool(other["started_at"] >= max(c["occurred_at"] for c in own if not c["success"]))


def _outcome(
    chain: dict[str, Any],
    own: list[dict[str, Any]],
    talk: dict[str, Any],
    successes: list[dict[str, Any]],
    now: int,
) -> str:
    if any(call["success"] for call in own):
        return "recovered"
    ended = talk["ended_at"] is not None and talk["ended_at"] >= talk["last_at"]
    if not (ended or talk["last_at"] <= now - 30 * MINUTE_US or talk["time_source"] == "none"):
        return "open"
    last = max(own, key=lambda c: (c["started_at"], c["seq"], c["event_id"]))
    others = (call for call in successes if call["tool"] != chain["tool"])
    return "switched" if any(_helps(call, own, last) for call in others) else "abandoned"


def _counted(query: Query, counts: dict[str, Any], now: int) -> bool:
    middle = counts | {
        "occurred_at": counts["minute"] + MINUTE_US // 2,
        "time_source": "client",
    }
    # They know no conversation, not even that they had none.
    if any(not clause.negated for clause in query.of("conversation")):
        return False
    return matches(query.without("conversation"), middle, now)


def matches(query: Query, call: dict[str, Any], now: int) -> bool:
    """Say whether a row matches every clause; all about issues must be about the same one."""
    # A key that comes again asks for another issue.
    of_issues = {
        clause.key: clause
        for clause in reversed(query.clauses)
        if clause.key in {"field", "field_pattern", "issue", "near_miss"}
        and not clause.negated
        and all(isinstance(value, Pattern) and value.exact != "" for value in clause.values)
    }.values()
    if of_issues and not any(
        all(_clause(clause, {**call, "issues": [issue]}, now) for clause in of_issues)
        for issue in call.get("issues", [])
    ):
        return False
    return all(_clause(clause, call, now) for clause in query.clauses)


def _clause(clause: Clause, call: dict[str, Any], now: int) -> bool:
    found = any(_value(clause.key, value, call, now) for value in clause.values)
    return found != clause.negated


def _fits(pattern: Pattern, value: Any) -> bool:
    if pattern.exact == "":
        return value is None or value == ""
    if value is None:
        return False
    return _expression(pattern.parts).fullmatch(str(value)) is not None


@lru_cache(maxsize=1024)
def _expression(parts: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in parts), re.DOTALL)


_LOWER: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


def _ascii_lower(text: str) -> str:
    return text.translate(_LOWER)


def _value(key: str, value: Any, call: dict[str, Any], now: int) -> bool:
    if isinstance(value, Moment):
        at = value.resolve(now)
        if key == "first_seen":
            return call["time_source"] != "none" and (call.get("first_seen") or 0) >= at
        return call["occurred_at"] >= at if key == "since" else call["occurred_at"] < at
    if isinstance(value, NumberRange):
        return _within(value, call[COLUMNS.get(key, key)])
    assert isinstance(value, Pattern)
    if key == TEXT:
        return _ascii_lower(value.parts[0]) in _ascii_lower(call["text_llm"] or "")
    if key.startswith("tag."):
        return _fits(value, call["tags"].get(key[4:]))
    if key == "has":
        return _carries(value.parts[0], call)
    if key == "chain":
        return (call["chain_outcome"] or "none") == value.exact
    return any(_fits(value, found) for found in _values(key, value, call))


def _values(key: str, value: Pattern, call: dict[str, Any]) -> list[Any]:
    issues = call.get("issues", [])
    if key == "field":
        named = [i for i in issues if i["root_field"]]
        if value.exact == "":
            return [None] if not named else []
        return [i[k] for i in issues for k in ("root_field", "field_pattern", "field")]
    if key == "code":
        return codes_of(call)
    if key in {"field_pattern", "issue"}:
        return [i["field_pattern" if key == "field_pattern" else "code"] for i in issues]
    if key == "near_miss":
        names = [name for issue in issues for name in issue["near_miss"]]
        return [value.exact] if value.exact == "any" and names else names
    if key == "variant":
        whole = call["variant"]
        return [whole, *(whole or "").split(",")] if whole and value.exact != "" else [whole]
    if key == "message":
        return [call["message_digest"], call["message_text"]]
    if key == "signature":
        return [call["fingerprint"]]
    return [call[COLUMNS.get(key, key)]]


def codes_of(call: Mapping[str, Any]) -> list[Any]:
    """The codes that a failure counts under, each once: its own, and those of its issues."""
    return [*dict.fromkeys([call["code"], *(issue["code"] for issue in call.get("issues", []))])]


def _within(value: NumberRange, number: Any) -> bool:
    if number is None:
        return False
    if value.low is not None and (
        number < value.low or (number == value.low and not value.low_included)
    ):
        return False
    return (
        value.high is None or number < value.high or (number == value.high and value.high_included)
    )


def _carries(name: str, call: dict[str, Any]) -> bool:
    if name in {"field", "field_pattern"}:
        return any(issue["root_field"] for issue in call["issues"])
    if name == "issue":
        return bool(call["issues"])
    if name == "near_miss":
        return any(issue["near_miss"] for issue in call["issues"])
    column = {"chain": "chain_id", "signature": "fingerprint", "message": "message_digest"}
    return call[column.get(name, COLUMNS.get(name, name))] not in (None, "")
