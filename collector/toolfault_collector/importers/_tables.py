"""The tables of ``docs/importing.md``, written from the code that they describe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from toolfault_collector.importers._soft import SOFT_RULES
from toolfault_collector.importers.classify import RULES, Rule
from toolfault_collector.importers.formats import FORMATS

__all__ = ["formats_table", "rules_table", "soft_rules_table"]


def formats_table() -> str:
    """Give the formats as a Markdown table."""
    return _table(("name", "what it is"), ((f"`{f.name}`", f.title) for f in FORMATS))


def soft_rules_table() -> str:
    """Give the rules for soft failures as a Markdown table."""
    return _table(
        ("detection", "the result of a success"),
        ((f"`soft:{name}`", meaning) for name, meaning in SOFT_RULES),
    )


def rules_table() -> str:
    """Give the classification rules in their order as a Markdown table."""
    return _table(
        ("rule", "code", "category", "audience", "field", "example"), map(_rule_cells, RULES)
    )


def _rule_cells(rule: Rule) -> tuple[str, ...]:
    example = rule.examples[0].replace("\n", " ⏎ ")
    shell = " (shell tools)" if rule.shell_only else ""
    names = rule.of_subject or "field" in rule.pattern.groupindex
    named = "named in the text" if names else ""
    return (
        f"`{rule.name}`{shell}",
        f"`{rule.code}`",
        rule.category,
        rule.audience or ("system" if rule.category == "internal" else "llm"),
        f"`{rule.field}`" if rule.field else named,
        f"`{example}`",
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Join cells to a table; a bar within a cell would end it."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
