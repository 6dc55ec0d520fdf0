"""The one table of what can become of a tool call, for every framework.

Standard library only: it is imported in the environment of each framework.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.integrations.tools import SECRET

AGENT = "travel"
MODEL = "scripted-1"
CONVERSATION = "thread-7"


@dataclass(frozen=True)
class ModelCall:
    """A call that the scripted model makes.

    Attributes:
        tool: Name of the tool.
        arguments: A dict, or a text that is no JSON.
        call_id: The provider's id.
    """

    tool: str
    arguments: dict[str, Any] | str
    call_id: str = "c1"


@dataclass(frozen=True)
class Expected:
    """The event of one call.

    Attributes:
        call_id: Which call.
        tool: Its tool.
        code: Code of the failure; None for a success.
        issues: Field and code of every issue.
        phantoms: Arguments that the framework drops without a word.
    """

    call_id: str
    tool: str
    code: str | None = None
    issues: tuple[tuple[str, str], ...] = ()
    phantoms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """One row of the table.

    Attributes:
        name: What happens.
        turns: The calls of each answer of the model; afterwards it says "done".
        events: One per call; none for a call that has not ended (an interrupt).
        handled: Whether the framework is told to answer exceptions itself.
        limit: The time limit of the tool, seconds.
        decorated: Whether the tools are decorated with ``toolfault.tool``.
        cancelled: Whether the host cancels the run while the body runs.
        interrupts: Whether the body interrupts the run in the framework's way.
        secret: What must not leave the process.
        async_only: Whether it needs an event loop.
    """

    name: str
    turns: tuple[tuple[ModelCall, ...], ...]
    events: tuple[Expected, ...]
    handled: bool = False
    limit: float | None = None
    decorated: bool = False
    cancelled: bool = False
    interrupts: bool = False
    secret: str | None = None
    async_only: bool = False


@dataclass
class Outcome:
    """What a run gave the model and the host.

    Attributes:
        told: By call id, what the model read of each call in its next input.
        answer: What the run returned to the host, as text.
        error: ``Type: text`` of the exception that the host saw, or None.
    """

    told: dict[str, str] = field(default_factory=dict)
    answer: str | None = None
    error: str | None = None


WRONG = {"people": "four", "outside": "maybe"}
RIGHT = {"restaurant": "Da Enzo", "people": 4, "outside": False}
THREE = (("outside", "wrong_type"), ("people", "wrong_type"), ("restaurant", "missing_field"))
BROKEN = '{"restaurant": "Da Enzo", "people": 4'


def _one(name: str, call: ModelCall, *events: Expected, **more: Any) -> Scenario:
    return Scenario(name, ((call,),), events, **more)


SCENARIOS = (
    _one("success", ModelCall("lookup", {"key": "a"}), Expected("c1", "lookup")),
    _one(
        "success of a decorated tool",
        ModelCall("lookup", {"key": "a"}),
        Expected("c1", "lookup"),
        decorated=True,
    ),
    _one(
        "wrong type",
        ModelCall("book", {**RIGHT, "people": "four"}),
        Expected("c1", "book", "wrong_type", (("people", "wrong_type"),)),
    ),
    _one(
        "missing",
        ModelCall("book", {"people": 4, "outside": False}),
        Expected("c1", "book", "missing_field", (("restaurant", "missing_field"),)),
    ),
    _one(
        "three faults at once",
        ModelCall("book", WRONG),
        Expected("c1", "book", "invalid_input", THREE),
    ),
    _one(
        "three faults at once, decorated",
        ModelCall("book", WRONG),
        Expected("c1", "book", "invalid_input", THREE),
        decorated=True,
    ),
    _one(
        "unknown argument",
        ModelCall("book", {**RIGHT, "terrace": True}),
        Expected("c1", "book", phantoms=("terrace",)),
    ),
    _one("unparsable JSON", ModelCall("book", BROKEN), Expected("c1", "book", "malformed_json")),
    _one("unknown tool", ModelCall("bookk", RIGHT), Expected("c1", "bookk", "not_available")),
    _one(
        "raise",
        ModelCall("lookup", {"key": "boom"}),
        Expected("c1", "lookup", "internal_error"),
        secret=SECRET,
    ),
    _one(
        "raise in a decorated tool",
        ModelCall("lookup", {"key": "boom"}),
        Expected("c1", "lookup", "internal_error"),
        decorated=True,
        secret=SECRET,
    ),
    _one(
        "raise handled by the framework",
        ModelCall("lookup", {"key": "boom"}),
        Expected("c1", "lookup", "internal_error"),
        handled=True,
        secret=SECRET,
    ),
    _one(
        "returned error",
        ModelCall("lookup", {"key": "refused"}),
        Expected("c1", "lookup", "internal_error"),
    ),
    _one(
        "returned error of a decorated tool",
        ModelCall("lookup", {"key": "refused"}),
        Expected("c1", "lookup", "internal_error"),
        decorated=True,
    ),
    _one(
        "time-out",
        ModelCall("wait", {"key": "a"}),
        Expected("c1", "wait", "timeout"),
        limit=0.05,
        async_only=True,
    ),
    _one(
        "time-out of the decorator",
        ModelCall("wait", {"key": "a"}),
        Expected("c1", "wait", "timeout"),
        limit=0.05,
        decorated=True,
        async_only=True,
    ),
    _one(
        "cancelled",
        ModelCall("wait", {"key": "a"}),
        Expected("c1", "wait", "cancelled"),
        cancelled=True,
        async_only=True,
    ),
    Scenario(
        "parallel, one failing",
        ((ModelCall("book", WRONG, "p1"), ModelCall("book", RIGHT, "p2")),),
        (Expected("p1", "book", "invalid_input", THREE), Expected("p2", "book")),
    ),
    Scenario(
        "retry until success",
        ((ModelCall("book", WRONG, "c1"),), (ModelCall("book", RIGHT, "c2"),)),
        (Expected("c1", "book", "invalid_input", THREE), Expected("c2", "book")),
    ),
    _one("interrupt", ModelCall("ask", {"question": "sure?"}), interrupts=True),
    _one(
        "secret in arguments",
        ModelCall("login", {"user": "ann", "password": SECRET, "tries": "many"}),
        Expected("c1", "login", "wrong_type", (("tries", "wrong_type"),)),
        secret=SECRET,
    ),
)
