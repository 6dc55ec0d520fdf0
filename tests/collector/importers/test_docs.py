"""docs/importing.md names what the importers know."""

from __future__ import annotations

from pathlib import Path

from toolfault_collector.importers import FORMATS
from toolfault_collector.importers.classify import RULES, SHELL_TOOLS

DOCS = Path(__file__).parents[3] / "docs" / "importing.md"


def test_every_format_rule_and_shell_tool_is_named() -> None:
    """The formats, the rules, their codes, and the tools whose output is read as a command's."""
    text = DOCS.read_text(encoding="utf-8")
    names = {each.name for each in FORMATS} | {rule.name for rule in RULES}
    names |= {rule.code for rule in RULES}
    assert {name for name in names if f"`{name}`" not in text} == set()
    tools = SHELL_TOOLS - {"sh"}  # which is named with bash
    assert {tool for tool in tools if f"`{tool}`" not in text.lower()} == set()
