"""The dimensions of a query: one table that says what each key means and where it applies.

Three kinds of rows are filtered by the same query:

* *failures* (failed rows of ``tool_call``): every key restricts them;
* *chains*: a chain is in the scope when its opening failure is, so every key restricts them
  through that failure; ``chain:`` asks for the outcome of the chain itself;
* *calls*, the denominators (rows of ``tool_call`` and folded successes of ``call_counts``): only a
  key that a success has too can restrict them. The others are left out of the denominator, and
  every answer with a rate names them (``not_restricting_calls``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from toolfault_collector.chains.fold import LOOK_BACK
from toolfault_dashboard.search.ast import TEXT, Pattern, Query
from toolfault_dashboard.search.states import KIND_STATES

__all__ = [
    "ALIASES",
    "FACETS",
    "KEYS",
    "RESTRICTING_CALLS",
    "TAG_PREFIX",
    "Key",
    "Kind",
    "arms_of",
    "is_of_all_days",
    "not_restricting_calls",
]

Kind = Literal["pattern", "choice", "number", "milliseconds", "time", "presence", "message"]

TAG_PREFIX: Final = "tag."


@dataclass(frozen=True, slots=True)
class Key:
    """One key of the query language.

    Attributes:
        name: The key as written before the colon.
        kind: How its values are read: text with wildcards, one of ``choices``, numbers, a moment,
            or the name of another key (``has:``).
        help: One sentence for the help page and for errors.
        example: A clause that uses it.
        choices: The valid values of a ``choice``.
        restricts_calls: Whether a success has it too, so that it restricts denominators.
        audience: The lowest role audience that may see it, or filter on it: what a reader may not
            see, the reader may not probe by counting either.
        title: What pages call it.
        column: The column of ``tool_call`` that it is, where it is one.
        chain_column: The column of ``chain`` that repeats it for the opening failure.
        facet: Its place among the facets of a list, from 1; 0 for what is none.
        is_column: Whether it can be added to the list of failures as a column.
    """

    name: str
    kind: Kind
    help: str
    example: str
    choices: tuple[str, ...] = ()
    restricts_calls: bool = False
    audience: Literal["user", "llm", "system"] = "user"
    title: str = ""
    column: str = ""
    chain_column: str = ""
    facet: int = 0
    is_column: bool = False


_TABLE: Final = (
    Key(
        "tool",
        "pattern",
        "Tool that was called.",
        "tool:http_request",
        restricts_calls=True,
        title="Tool",
        column="tool",
        chain_column="tool",
        facet=1,
    ),
    Key(
        "model",
        "pattern",
        "Model that made the call.",
        "model:claude*",
        restricts_calls=True,
        title="Model",
        column="model",
        chain_column="model",
        facet=7,
        is_column=True,
    ),
    Key(
        "agent",
        "pattern",
        "Agent that called it.",
        "agent:travel-bot",
        restricts_calls=True,
        title="Agent",
        column="agent",
        chain_column="agent",
        facet=8,
        is_column=True,
    ),
    Key(
        "release",
        "pattern",
        "Release of the agent.",
        "release:1.4.0",
        restricts_calls=True,
        title="Release",
        column="release",
        chain_column="release",
        facet=9,
        is_column=True,
    ),
    Key(
        "environment",
        "pattern",
        "Environment of the agent.",
        "environment:prod",
        restricts_calls=True,
        title="Environment",
        column="environment",
        chain_column="environment",
        facet=10,
        is_column=True,
    ),
    Key(
        "variant",
        "pattern",
        "Variant of an experiment.",
        "variant:after",
        restricts_calls=True,
        title="Variant",
        column="variant",
        chain_column="variant",
        facet=11,
        is_column=True,
    ),
    Key(
        "framework",
        "pattern",
        "Framework whose integration saw the call.",
        "framework:langchain",
        title="Framework",
        column="framework",
        facet=12,
        is_column=True,
    ),
    Key(
        "conversation",
        "pattern",
        "Conversation in which it was called.",
        "conversation:conv-42",
        restricts_calls=True,
        title="Conversation",
        column="session_id",
        chain_column="session_id",
        is_column=True,
    ),
    Key(
        "since",
        "time",
        "At or after this moment (an age or a UTC date).",
        "since:7d",
        restricts_calls=True,
    ),
    Key(
        "until",
        "time",
        "Before this moment (an age or a UTC date).",
        "until:2026-11-01",
        restricts_calls=True,
    ),
    Key(
        "first_seen",
        "time",
        "Kind of failure never seen before this moment (an age or a UTC date).",
        "first_seen:1d",
    ),
    Key(
        "time",
        "choice",
        "Which clock the time comes from; none: the source records no times.",
        "-time:none",
        choices=("client", "server", "import", "none"),
        restricts_calls=True,
        column="time_source",
        chain_column="time_source",
    ),
    Key(
        "code",
        "pattern",
        "Code of the failure or of one of its issues.",
        "code:wrong_type,missing_field",
        title="Code",
        facet=2,
    ),
    Key(
        "own_code",
        "pattern",
        "Code of the failure itself, whatever its issues say.",
        "own_code:invalid_input",
        column="code",
        chain_column="first_code",
    ),
    Key(
        "category",
        "choice",
        "Category of the failure.",
        "category:parameter",
        choices=("availability", "parameter", "internal"),
        title="Category",
        column="category",
        chain_column="first_category",
        facet=3,
        is_column=True,
    ),
    Key(
        "audience",
        "choice",
        "Whom the failure is for.",
        "-audience:user",
        choices=("user", "llm", "system"),
        title="Audience",
        column="audience",
        facet=4,
    ),
    Key(
        "field",
        "pattern",
        "Argument an issue is about: its path, pattern or root.",
        "field:port",
        title="Field",
        facet=5,
    ),
    Key(
        "field_pattern",
        "pattern",
        "Path of such an argument, list positions as *.",
        'field_pattern:"items.*.port"',
    ),
    Key("issue", "pattern", "Code of one of the issues.", "issue:wrong_type"),
    Key(
        "near_miss",
        "pattern",
        "Remedy that would have accepted the value, or any.",
        "near_miss:bool_from_string",
        audience="llm",
        title="Near miss",
    ),
    Key("reason", "pattern", "Reason given with the failure.", "reason:paused", column="reason"),
    Key("phase", "pattern", "Where in the call it failed.", "phase:validation", column="phase"),
    Key(
        "chain",
        "choice",
        "Outcome of the chain the failure belongs to, or none.",
        "chain:abandoned",
        choices=("recovered", "switched", "abandoned", "open", "none"),
        title="Outcome of the chain",
        facet=6,
    ),
    Key(
        "attempt",
        "number",
        f"Position of the call in its chain, counted from 1. {LOOK_BACK + 1} stands for every call"
        f" after the first {LOOK_BACK}.",
        "attempt:>1",
        title="Call of its chain",
        is_column=True,
    ),
    Key(
        "duration",
        "milliseconds",
        "Duration of the call in milliseconds.",
        "duration:>500",
        title="Duration",
        is_column=True,
    ),
    Key(
        "detection",
        "pattern",
        "How it was recognised: explicit, or soft:<rule>.",
        "-detection:soft*",
        title="Detection",
        column="detection",
        facet=13,
        is_column=True,
    ),
    Key("signature", "pattern", "Fingerprint of failures that are the same.", "signature:9f3c*"),
    Key("state", "choice", "State of the kind of failure.", "state:regressed", choices=KIND_STATES),
    Key("owner", "pattern", "Owner of the kind of failure.", "owner:ana"),
    Key(
        "message",
        "message",
        "Normalised message: its digest or its text.",
        'message:"flight * not available*"',
        audience="llm",
    ),
    Key(
        "exception",
        "pattern",
        "Type of the exception behind it.",
        "exception:TimeoutError",
        audience="system",
        column="exception_type",
    ),
    Key("user", "pattern", "User of the agent.", "user:u-7", audience="system", column="user"),
    Key(
        "side",
        "choice",
        "Side that reported the call: the agent's, or a server of tools.",
        "side:server",
        choices=("agent", "server"),
        title="Side",
        column="side",
    ),
    Key(
        "conversation_rung",
        "pattern",
        "What named the conversation: explicit, framework, baggage, meta, trace, handle or none.",
        "conversation_rung:none",
    ),
    Key(
        "event",
        "pattern",
        "Event id of the failure.",
        "event:0199a1f2-0000-7000-8000-000000000000",
        column="event_id",
        chain_column="chain_id",
    ),
    Key("has", "presence", "The failure carries this.", "has:field"),
)

KEYS: Final[dict[str, Key]] = {key.name: key for key in _TABLE}

FACETS: Final = tuple(key.name for key in sorted(_TABLE, key=lambda key: key.facet) if key.facet)
"""What the values of are counted beside a list."""

RESTRICTING_CALLS: Final = frozenset(name for name, key in KEYS.items() if key.restricts_calls)
"""Keys that restrict denominators too."""

ALIASES: Final = {"env": "environment", "session": "conversation"}
"""Names of the wire that people type; the canonical text uses the key."""


_OF_ALL_DAYS: Final = frozenset({"first_seen", "state", "owner"})


def is_of_all_days(query: Query) -> bool:
    """Say whether a condition of *query* hangs on more than the failures of its window.

    When a kind was first seen, and what state it is in, is told by all days, seen from now.
    """
    return any(
        clause.key in _OF_ALL_DAYS
        or (
            clause.key == "has"
            and any(
                isinstance(value, Pattern) and value.exact in _OF_ALL_DAYS
                for value in clause.values
            )
        )
        for clause in query.clauses
    )


def arms_of(variant: str) -> tuple[str, ...]:
    """Return the arms that a stored variant lists: a conversation may be in several trials."""
    return tuple(dict.fromkeys(variant.split(",")))


def not_restricting_calls(query: Query) -> tuple[str, ...]:
    """Return the keys of *query* that restrict failures but cannot restrict their denominator."""
    found = (clause.key for clause in query.clauses)
    return tuple(
        dict.fromkeys(
            key for key in found if key == TEXT or key not in KEYS or not KEYS[key].restricts_calls
        )
    )
