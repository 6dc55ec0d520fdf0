"""docs/importing.md and docs/classification.md show the formats and the rules as they are."""

from __future__ import annotations

import pytest
from tests.collector.importers.documented import CLASSIFICATION, table

from toolfault_collector.importers import FORMATS
from toolfault_collector.importers.classify import ISSUES_RULE, SHELL_TOOLS, classify
from toolfault_collector.importers.classify.rules import RULES, Rule


def test_the_formats_are_those_of_the_table():
    """Each with its name on the command line, what it is and what marks a failure, in order."""
    wanted = [[each.name, each.title, each.failure] for each in FORMATS]
    assert table("formats") == wanted


def test_the_rules_are_those_of_the_table():
    """In their order, with code, category, audience and field."""
    assert [row[:-1] for row in table("rules")] == [_cells(rule) for rule in RULES]


def _cells(rule: Rule) -> list[str]:
    found = classify("x", rule=rule.name)
    names = rule.of_subject or "(?P<field>" in rule.pattern
    return [
        f"`{rule.name}` (shell tools)" if rule.shell_only else rule.name,
        found.code,
        found.category,
        found.audience,
        found.field or ("named in the text" if names else ""),
    ]


@pytest.mark.parametrize("row", table("issues"), ids=lambda row: row[0])
def test_the_texts_that_list_faults_are_taken_apart_as_shown(row):
    """Each writer's text gives the fields and codes beside it."""
    found = classify(row[1])
    assert found.rule == ISSUES_RULE
    assert ", ".join(f"{issue.field}: {issue.code}" for issue in found.issues) == row[2]


def test_the_tools_whose_output_is_a_commands_are_named():
    """All but ``sh``, which is named with bash."""
    text = CLASSIFICATION.read_text(encoding="utf-8").lower()
    assert {tool for tool in SHELL_TOOLS - {"sh"} if f"`{tool}`" not in text} == set()
