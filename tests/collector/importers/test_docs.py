"""docs/importing.md says what the code does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from toolfault_collector.importers._tables import formats_table, rules_table, soft_rules_table
from toolfault_collector.importers.classify import SHELL_TOOLS

DOCS = Path(__file__).parents[3] / "docs" / "importing.md"


@pytest.mark.parametrize(
    ("name", "table"),
    [("formats", formats_table), ("soft", soft_rules_table), ("rules", rules_table)],
)
def test_the_tables_are_those_of_the_code(name: str, table: Callable[[], str]) -> None:
    """To renew a table, put what its function in _tables.py returns between the comments."""
    text = DOCS.read_text(encoding="utf-8")
    _, _, rest = text.partition(f"<!-- {name} -->\n")
    written, _, _ = rest.partition(f"\n<!-- /{name} -->")
    assert written == table()


def test_the_shell_tools_are_named() -> None:
    """Every tool whose output is read as a command's stands in the text (sh and bash as one)."""
    text = DOCS.read_text(encoding="utf-8").lower()
    assert all(f"`{tool}`" in text for tool in SHELL_TOOLS - {"sh"})
