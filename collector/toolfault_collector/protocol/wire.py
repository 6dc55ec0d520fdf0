"""Protocol v1 as typed data: what `docs/protocol.md` describes and `tests/contract/v1` freezes.

These types accept only events that need no change at all; msgspec checks them while it decodes.
Whatever they refuse goes through `repair`, which repairs what may be repaired and flags it. They
hold no cycles, so the garbage collector need not look at them (``gc=False``).
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta, Raw, Struct

__all__ = [
    "MAX_LABEL",
    "MOST_AMOUNT",
    "MOST_MILLISECONDS",
    "SCHEMA_VERSION",
    "CallCounts",
    "Change",
    "Coercion",
    "ConversationEnd",
    "Duration",
    "Envelope",
    "Event",
    "Failure",
    "ImportedCall",
    "ImportedError",
    "ImportedEvent",
    "Issue",
    "RaisedException",
    "Renderings",
    "ToolCall",
    "ToolError",
    "Validation",
]

SCHEMA_VERSION: Final = 1
MAX_LABEL: Final = 200  # characters that a change is called by

# Lengths in characters. Names and ids are what an index can carry; texts are what a page can show.
Code = Annotated[str, Meta(min_length=1, max_length=64)]
Short = Annotated[str, Meta(max_length=32)]
Label = Annotated[str, Meta(max_length=64)]
ShortName = Annotated[str, Meta(max_length=16)]
Name = Annotated[str, Meta(max_length=128)]
Required = Annotated[str, Meta(min_length=1, max_length=256)]
LongName = Annotated[str, Meta(max_length=256)]
Expected = Annotated[str, Meta(max_length=512)]
Message = Annotated[str, Meta(max_length=8_192)]
String = Annotated[str, Meta(max_length=16_384)]
Stack = Annotated[str, Meta(max_length=65_536)]
Tags = Annotated[dict[Label, Annotated[str, Meta(max_length=256)]], Meta(max_length=100)]
# What a signed 64-bit column holds.
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
# What is added up: eight million of the largest still fit into 64 bits.
MOST_AMOUNT: Final = 2**40
Amount = Annotated[int, Meta(ge=0, le=MOST_AMOUNT)]
# Thirty thousand years; sums of these stay finite.
TotalMilliseconds = Annotated[float, Meta(ge=0, le=1e15)]
Bucket = tuple[TotalMilliseconds | None, Amount]
MOST_MILLISECONDS: Final = 30 * 86_400_000
Milliseconds = Annotated[float, Meta(ge=0, le=MOST_MILLISECONDS)]
Rate = Annotated[float, Meta(gt=0, le=1)]


class _Part(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Written again, an event has no more members than it came with (`decode` relies on it)."""


class Issue(_Part):
    """One thing wrong with one argument."""

    code: Code
    field: LongName = ""
    message: Message | None = None
    expected: Expected | None = None
    received: String | None = None
    received_type: Label | None = None
    type: Label | None = None
    field_pattern: LongName | None = None
    root_field: LongName | None = None
    near_miss: Annotated[list[Label], Meta(max_length=20)] | None = None


class Renderings(_Part):
    """The text each audience is shown."""

    user: Message | None = None
    llm: Message | None = None
    system: Message | None = None


class RaisedException(_Part):
    """The exception behind a failure."""

    type: LongName | None = None
    module: LongName | None = None
    message: Message | None = None
    traceback: Stack | None = None


class Failure(_Part):
    """The `error` of a failed call."""

    code: Code
    category: Short | None = None
    audience: Short | None = None
    reason: Label | None = None
    kind: Short | None = None
    phase: Short | None = None
    field: LongName | None = None
    expected: Expected | None = None
    received: String | None = None
    received_type: Label | None = None
    snippet: String | None = None
    issues: Annotated[list[Issue], Meta(max_length=50)] = []
    issues_total: Annotated[int, Meta(ge=0, le=2**31 - 1)] | None = None
    retryable: bool | None = None
    retry_hint: Message | None = None
    retry_context: dict[str, Any] | None = None
    renderings: Renderings | None = None
    exception: RaisedException | None = None
    fingerprint: Label | None = None
    adapter_failed: bool | None = None


class Coercion(_Part):
    """One value that was repaired before validation."""

    field: LongName
    from_type: Label | None = None
    to_type: Label | None = None


class Validation(_Part):
    """How the arguments were validated, for before and after."""

    mode: ShortName | None = None
    version: Label | None = None


class _Call(_Part, kw_only=True):
    event_id: Label
    occurred_at: Label
    tool: Required
    seq: Count = 0
    session_id: LongName | None = None
    turn: Name | None = None
    run_id: Name | None = None
    request_id: Name | None = None
    call_id: Name | None = None
    trace_id: Name | None = None
    span_id: Name | None = None
    tool_requested: LongName | None = None
    agent: Name | None = None
    model: Name | None = None
    provider: Name | None = None
    environment: Name | None = None
    release: Name | None = None
    variant: LongName | None = None
    user: Name | None = None
    framework: Label | None = None
    side: ShortName | None = None
    conversation_rung: ShortName | None = None
    counted_by: ShortName | None = None
    duration_ms: Milliseconds | None = None
    sample_rate: Rate = 1.0
    attempt: Count | None = None
    chain_id: Label | None = None
    args_fingerprint: Label | None = None
    args_recorded: bool | None = None
    args_diff: Annotated[list[dict[str, Any]], Meta(max_length=200)] | None = None
    coercions: Annotated[list[Coercion], Meta(max_length=50)] | None = None
    phantom_arguments: Annotated[list[LongName], Meta(max_length=50)] | None = None
    idempotent: bool | None = None
    repeated: bool | None = None
    validation: Validation | None = None
    schema_hash: Label | None = None
    tokens: Amount | None = None
    tags: Tags | None = None
    error: Failure | None = None


class ToolCall(_Call, tag_field="type", tag="tool_call", kw_only=True):
    """One finished call, failed or not."""

    success: bool


class ToolError(_Call, tag_field="type", tag="tool_error", kw_only=True):
    """A failure captured outside a call; it counts as one failed call."""

    success: bool = False


class ImportedCall(ToolCall, tag_field="type", tag="tool_call", kw_only=True):
    """A call read from a transcript or a trace: how it was recognised, and where it has no time.

    Attributes:
        derived_by: The rule by which code, category and the texts but for the model's were made.
        dialect: Of a trace: whose instrumentation it was.
        span_ids: All spans that tell of it, if several do.
        reached: False where no span tells of it, only messages of a model.
    """

    time_source: Annotated[str, Meta(pattern="^(import|none)$")] = "import"
    detection: Label = "explicit"
    derived_by: Label | None = None
    dialect: Label | None = None
    span_ids: Annotated[list[Name], Meta(max_length=20)] | None = None
    reached: bool | None = None


class ImportedError(ToolError, tag_field="type", tag="tool_error", kw_only=True):
    """A failure read from a transcript."""

    time_source: Annotated[str, Meta(pattern="^(import|none)$")] = "import"
    detection: Label = "explicit"
    derived_by: Label | None = None


class Duration(_Part):
    """Latency histogram of folded successes; ``buckets`` are [upper bound in ms, calls]."""

    sum: TotalMilliseconds | None = None
    max: TotalMilliseconds | None = None
    buckets: Annotated[list[Bucket], Meta(max_length=64)] | None = None


class CallCounts(_Part, tag_field="type", tag="tool_call_counts", kw_only=True):
    """Folded successes of one minute."""

    event_id: Label
    minute: Label
    occurred_at: Label | None = None
    tool: Required | None = None
    agent: Name | None = None
    model: Name | None = None
    environment: Name | None = None
    release: Name | None = None
    variant: LongName | None = None
    calls: Amount = 0
    duration_ms: Duration | None = None
    repairs: Annotated[dict[LongName, Amount], Meta(max_length=200)] | None = None
    phantom_arguments: Annotated[dict[LongName, Amount], Meta(max_length=200)] | None = None
    repeated: Amount = 0
    conversations: Amount = 0
    calls_squared: Amount = 0
    counted_by: ShortName | None = None


class ConversationEnd(_Part, tag_field="type", tag="conversation_end", kw_only=True):
    """The end of a conversation that had a failure, with its calls per tool."""

    event_id: Label
    occurred_at: Label
    session_id: Required
    calls: Annotated[dict[LongName, Amount], Meta(max_length=200)] = {}
    counted_by: ShortName | None = None


class Change(_Part, tag_field="type", tag="change", kw_only=True):
    """A marker: validation was improved here."""

    event_id: Label
    occurred_at: Label
    label: Annotated[str, Meta(min_length=1, max_length=MAX_LABEL)]
    tool: LongName | None = None
    kind: Annotated[str, Meta(pattern="^(manual|release|schema|variant)$")] = "manual"


Event = ToolCall | ToolError | CallCounts | ConversationEnd | Change
ImportedEvent = ImportedCall | ImportedError | CallCounts | ConversationEnd | Change


class Envelope(Struct):
    """One batch. Members beside the events describe the sender; unknown ones are ignored."""

    events: list[Raw]
    schema_version: int = SCHEMA_VERSION
    sent_at: str | None = None
    sdk: dict[str, Any] | None = None
    resource: dict[str, Any] | None = None
    dropped: Any = None
