"""The second net under stored events: their texts without recognised secrets, flagged if changed.

Which texts a person may read is settled here once: what the model or the user was told, what was
received, exceptions, tags, members nobody knows, and what a change is called. Names and ids are
left alone, since they are what everything is counted by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from toolfault_collector.protocol import wire
from toolfault_collector.protocol.redaction.prefilter import may_hold_secret
from toolfault_collector.protocol.redaction.rules import redact, redact_value

__all__ = ["MAX_SEARCHED", "Search", "scrub", "scrub_label"]

# Characters of one batch that are searched. Each costs up to a microsecond, so this is a second,
# where 20 MiB would be twenty. The SDK's batches have a MiB at most and are always searched whole;
# of other batches only texts count that the quick look finds something in.
MAX_SEARCHED: Final = 1_048_576

_TEXTS: Final[dict[type[msgspec.Struct], tuple[str, ...]]] = {
    wire.Failure: ("expected", "received", "snippet", "retry_hint", "retry_context"),
    wire.Renderings: ("user", "llm", "system"),
    wire.RaisedException: ("message", "traceback"),
    wire.Issue: ("message", "expected", "received"),
}


class Search:
    """The search of one batch for secrets: thorough where it must be, and bounded.

    Args:
        characters: How many may be searched. A text that would be more is not kept, for nobody
            knows what is in it.
    """

    def __init__(self, characters: float = MAX_SEARCHED) -> None:
        self._left = characters
        self.gave_up = False

    def clean(self, text: str) -> str:
        """Return *text* without recognised secrets, or that there was no room to look for them."""
        # As JSON writes it, for that is what the quick look knows.
        if not may_hold_secret(msgspec.json.encode(text)):
            return text
        if len(text) > self._left:
            self.gave_up = True
            return f"[not kept: {len(text)} characters in which secrets were not looked for]"
        self._left -= len(text)
        return redact(text)


def scrub(
    event: wire.ToolCall | wire.ToolError,
    extra: dict[str, Any],
    source: bytes | Mapping[str, Any],
    search: Search,
) -> list[str]:
    """Redact the texts of *event* and *extra* in place; return the flags of what was changed.

    Args:
        event: The decoded event.
        extra: Its members that this version does not know.
        source: What it was decoded from: most events need no look at their texts.
        search: That of its batch.
    """
    if isinstance(source, bytes) and not may_hold_secret(source):
        return []
    flags: dict[str, None] = {}

    def clean(value: Any, member: str, *, name: str = "") -> Any:
        search.gave_up = False
        cleaned = redact_value(value, name=name, clean=search.clean)
        if cleaned != value:
            flags["redacted"] = None
        if search.gave_up:
            flags[f"unsearched:{member}"] = None
        return cleaned

    extra.update(clean(extra, "extra"))
    event.tags = event.tags and clean(event.tags, "tags")
    event.args_diff = event.args_diff and clean(event.args_diff, "args_diff")
    for part, place, field in _parts(event.error):
        for name in _TEXTS[type(part)]:
            value = getattr(part, name)
            if value:
                # What was received for "password" is one, whatever it looks like.
                of = (field or "").rpartition(".")[2] if name == "received" else ""
                setattr(part, name, clean(value, f"{place}.{name}", name=of))
    return list(flags)


def scrub_label(label: str, search: Search) -> tuple[str, tuple[str, ...]]:
    """Return the *label* of a change, redacted, and the flags of what was changed."""
    search.gave_up = False
    cleaned = search.clean(label)
    if cleaned == label:
        return label, ()
    flags = ("redacted", "unsearched:label") if search.gave_up else ("redacted",)
    return cleaned[: wire.MAX_LABEL], flags


def _parts(error: wire.Failure | None) -> Iterator[tuple[msgspec.Struct, str, str | None]]:
    """Yield each part of *error* that holds texts, where it stands, and the field it is about."""
    if error is None:
        return
    yield error, "error", error.field
    if error.renderings is not None:
        yield error.renderings, "error.renderings", None
    if error.exception is not None:
        yield error.exception, "error.exception", None
    for position, issue in enumerate(error.issues):
        yield issue, f"error.issues.{position}", issue.field
