"""What an agent understands of a failed tool call: the text it got back, nothing else.

The simulated models do not know what went wrong. They read the tool message as a model would,
find the fields it names, and mend those; a message that names nothing leaves them guessing. So the
wording of the SDK's messages decides how many round trips the demo shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Complaint", "read_complaint"]

_BULLET: Final = re.compile(r"^\s*• ([\w.\[\]*-]+): ", re.MULTILINE)
_NAMED: Final = re.compile(
    r"(?:Missing required parameter|Unexpected parameter|Invalid parameter value for):? "
    r"([\w.\[\]*-]+)"
)
_QUOTED: Final = re.compile(r"`(\w+)`")
_EXPLAINED: Final = re.compile(r"should|must|Missing|Unexpected|looks like|Start|has ")


@dataclass(frozen=True, slots=True)
class Complaint:
    """What an error text says.

    Attributes:
        fields: Fields it names, outermost name only.
        explained: It says what would be right, not only that something is wrong.
        unavailable: The tool cannot be used at all.
        unparsed: The arguments were no JSON object.
        transient: Nothing the model could mend; trying again may help.
        for_person: Only the person can mend it.
    """

    fields: frozenset[str] = frozenset()
    explained: bool = True
    unavailable: bool = False
    unparsed: bool = False
    transient: bool = False
    for_person: bool = False


def read_complaint(tool_message: Mapping[str, Any]) -> Complaint:
    """Read the tool message of a failed call.

    Args:
        tool_message: ``{"role": "tool", "tool_call_id": ..., "content": TEXT}`` as it would be
            appended to the conversation; the content is the JSON of the SDK's payload.
    """
    content = json.loads(tool_message["content"])
    text = "\n".join(part for part in (content.get("message"), content.get("retry_hint")) if part)
    if "is not available" in text:
        return Complaint(unavailable=True)
    if "failed to parse tool arguments" in text:
        return Complaint(unparsed=True)
    if "unexpected error occurred" in text:
        return Complaint(transient=True)
    if "Ask the person" in text:
        return Complaint(for_person=True)
    named = _BULLET.findall(text) + _NAMED.findall(text) + _QUOTED.findall(text)
    return Complaint(
        fields=frozenset(re.split(r"[.\[]", name)[0] for name in named),
        explained=_EXPLAINED.search(text) is not None,
    )
