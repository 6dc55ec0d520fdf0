"""The tables of docs/importing.md and docs/classification.md, as a reader finds them."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs" / "importing.md"
CLASSIFICATION = DOCS.with_name("classification.md")


def table(name: str) -> list[list[str]]:
    """Give the cells of a table by row, without its head and the backticks around a whole cell."""
    text = "\n".join(each.read_text(encoding="utf-8") for each in (DOCS, CLASSIFICATION))
    found = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", text, re.DOTALL)
    assert found is not None
    rows = [re.split(r" (?<!\\)\| ", line[2:-2]) for line in found[1].splitlines()[2:]]
    return [[_plain(cell) for cell in row] for row in rows]


def examples() -> list[tuple[str, str]]:
    """Give the rules for texts with their examples."""
    return [(row[0].split()[0].strip("`"), row[-1]) for row in table("rules")]


def _plain(cell: str) -> str:
    whole = re.fullmatch(r"`([^`]+)`|``((?!`).+(?<!`))``", cell.strip(), re.DOTALL)
    text = (whole[1] or whole[2]) if whole else cell.strip()
    return text.replace(" ⏎ ", "\n").replace("\\|", "|")
