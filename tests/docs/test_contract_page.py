"""``docs/contract.md`` says which test proves each item of the SDK contract.

Tests name the items they prove at the start of their docstring: ``[L-01][A01] ...``. With
``TOOLFAULT_WRITE_DOCS=1`` the page is written instead of compared.
"""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from pathlib import Path

from tests.docs.contract_items import ITEMS, SECTIONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "contract.md"
PLACES = ("tests/sdk", "tests/typing")
SHOWN = 4  # tests named per item; the others are counted
_TAGS = re.compile(r"(?:\[[A-Z]+-?\d+\])+")

HEAD = """# The error contract, item by item

The contract grew out of five published designs for tool errors. Each item below is proved by tests
that name it; a test regenerates this page from their docstrings and fails if it is out of date
(`TOOLFAULT_WRITE_DOCS=1` rewrites it). What the model reads in each case, and why, stands in
[What a model is told](errors-for-llms.md).
"""


def tagged_tests() -> dict[str, list[str]]:
    """Names of the tests by the item they prove, in the order of files and lines."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(path for place in PLACES for path in (ROOT / place).rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            tags = _TAGS.match(ast.get_docstring(node) or "")
            for tag in re.findall(r"\[([^\]]+)\]", tags[0]) if tags else ():
                found[tag].append(f"{path.relative_to(ROOT).as_posix()}::{node.name}")
    return found


def written_page() -> str:
    """The page as it should be."""
    proofs = tagged_tests()
    lines = [HEAD]
    for letter, title in SECTIONS.items():
        lines += [f"## {title}", "", "| item | what it says | tests |", "|---|---|---|"]
        for item, text in ITEMS.items():
            if item.rstrip("0123456789").rstrip("-") == letter:
                lines.append(f"| {item} | {text} | {_named(proofs[item])} |")
        lines.append("")
    return "\n".join(lines)


def _named(tests: list[str]) -> str:
    named = [f"`{test.removeprefix('tests/')}`" for test in tests[:SHOWN]]
    hidden = len(tests) - len(named)
    return "<br>".join(named) + (f"<br>and {hidden} more" if hidden > 0 else "")


def test_every_item_is_proved() -> None:
    """No item of the contract is without a test."""
    proofs = tagged_tests()

    assert [item for item in ITEMS if not proofs[item]] == []


def test_every_tag_is_an_item() -> None:
    """A test that names an item of a listed section names one that exists."""
    listed = {tag for tag in tagged_tests() if tag.rstrip("0123456789").rstrip("-") in SECTIONS}

    assert listed - set(ITEMS) == set()


def test_the_page_is_up_to_date() -> None:
    """The page lists the tests as they are."""
    page = written_page()
    if os.environ.get("TOOLFAULT_WRITE_DOCS"):
        PAGE.write_text(page, "utf-8")

    assert PAGE.read_text("utf-8") == page
