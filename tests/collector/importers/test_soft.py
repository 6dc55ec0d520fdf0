"""What looks like a failure but is marked as a success."""

from __future__ import annotations

import pytest

from toolfault_collector.importers._soft import SOFT_RULES, soft_rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('{"isError": true}', "json_is_error"),
        ('{"is_error": true, "content": []}', "json_is_error"),
        ('{"status": "error", "message": "x"}', "json_status"),
        ('{"status": "Failed"}', "json_status"),
        ('{"success": false}', "json_status"),
        ('{"ok": false}', "json_status"),
        ('{"error": "not found"}', "json_error"),
        (' {"errors": ["x"]}', "json_error"),
        ("<tool_use_error>x</tool_use_error>", "error_tag"),
        ("Exit code 1\nx", "exit_code"),
        ("Error: x", "error_prefix"),
        ("error x", "error_prefix"),
        ("Traceback (most recent call last):\n", "error_prefix"),
        ("Failed to read", "error_prefix"),
        ("", None),
        ("Exit code 0", None),
        ("No errors found", None),
        ("Errors: none", None),
        ('{"error": null, "errors": []}', None),
        ('{"error": false}', None),
        ('{"status": "ok", "success": true}', None),
        ('{"status": 500}', None),
        ('{"message": "the error field"}', None),
        ('[{"error": "x"}]', None),
        ('{"error": "cut', None),
        ('{"a":' * 10_000 + '"error"', None),
    ],
)
def test_soft_rules(text: str, rule: str | None) -> None:
    """Only what stands at the top of a result counts, not words within it."""
    assert soft_rule(text) == rule


def test_every_rule_is_listed() -> None:
    """The names that can be stored are those that are documented."""
    assert len({name for name, _ in SOFT_RULES}) == len(SOFT_RULES)
