"""The page that says what leaves the process names every member of the wire, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import inspect

from toolfault_collector.protocol import wire

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "what-leaves.md").read_text("utf-8")
SECTIONS = {
    "Calls and errors": (wire.ToolCall, wire.ToolError),
    "Counted successes": (wire.CallCounts,),
    "Ends of conversations": (wire.ConversationEnd,),
    "Changes": (wire.Change,),
    "Each request": (wire.Envelope,),
}


def members(type_: Any, path: str = "") -> Iterator[str]:
    """The dotted names of what has no members of its own in *type_*."""
    if isinstance(type_, inspect.UnionType):
        inner = [one for one in type_.types if not isinstance(one, inspect.NoneType)]
        type_ = inner[0] if len(inner) == 1 else type_
    if isinstance(type_, inspect.Metadata):
        type_ = type_.type
    if isinstance(type_, inspect.ListType):
        item = list(members(type_.item_type, path))
        yield from item if item != [path] else [path]
    elif isinstance(type_, inspect.StructType):
        if type_.tag_field is not None:
            yield type_.tag_field
        for field in type_.fields:
            yield from members(field.type, f"{path}.{field.encode_name}".lstrip("."))
    else:
        yield path


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_page_names_every_member(heading: str) -> None:
    """The first column of a section lists the members of its types, each once."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    wired = {name for type_ in SECTIONS[heading] for name in members(inspect.type_info(type_))}

    assert sorted(named) == sorted(wired)
