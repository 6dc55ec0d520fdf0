"""What `docs/coding-agents.md` says of tools and limits is what the code does."""

from __future__ import annotations

from pathlib import Path

from toolfault_dashboard.exports.fixes import CHAINS_OF_A_FIX
from toolfault_dashboard.mcp.answers import BYTES_PER_TOKEN, estimated_tokens
from toolfault_dashboard.mcp.sdk import definitions
from toolfault_dashboard.mcp.tools import INSTRUCTIONS, TOOLS
from toolfault_dashboard.mcp.untrusted import LONGEST, LONGEST_NAME

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "coding-agents.md").read_text("utf-8")
FLAT = " ".join(TEXT.split())


def test_every_tool_stands_in_the_table_with_its_budget() -> None:
    """Name and most tokens of each, in order, and no tool besides."""
    rows = [line.split("|") for line in TEXT.splitlines() if "| `toolfault " in line]
    table = {row[1].strip(" `"): row[4].strip() for row in rows}
    assert table == {name: f"{tool.tokens:,}" for name, tool in TOOLS.items()}


def test_every_limit_is_the_one_that_is_written_down() -> None:
    """Each number of the page, in the words around it."""
    listed = [each.model_dump_json(by_alias=True, exclude_none=True) for each in definitions()]
    patches = max(longest for name, longest in LONGEST.items() if name.startswith("patch"))
    for words in (
        f"take {estimated_tokens(''.join([*listed, INSTRUCTIONS])):,} tokens",
        "UTF-8 bytes divided by three" if BYTES_PER_TOKEN == 3 else "?",
        f"at most {LONGEST_NAME} bytes of an answer, a message {LONGEST['message_to_model']}",
        f"a patch up to {patches};",
        f"the {CHAINS_OF_A_FIX} newest chains of each fix",
    ):
        assert words in FLAT, words
