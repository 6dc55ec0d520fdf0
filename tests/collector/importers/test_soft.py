"""What looks like a failure but is marked as a success."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.collector.importers.counting import parsed
from tests.collector.importers.documented import table

RULES = {
    '{"isError": true}': "json_is_error",
    '{"is_error": true, "content": []}': "json_is_error",
    '{"status": "error", "message": "x"}': "json_status",
    '{"status": "Failed"}': "json_status",
    '{"success": false}': "json_status",
    '{"ok": false}': "json_status",
    '{"error": "not found"}': "json_error",
    ' {"errors": ["x"]}': "json_error",
    "<tool_use_error>x</tool_use_error>": "error_tag",
    "Exit code 1\nx": "exit_code",
    "Error: x": "error_prefix",
    "error x": "error_prefix",
    "Traceback (most recent call last):\n": "error_prefix",
    "Failed to read": "error_prefix",
    "": None,
    "Exit code 0": None,
    "No errors found": None,
    "Errors: none": None,
    '{"error": null, "errors": []}': None,
    '{"error": false}': None,
    '{"status": "ok", "success": true}': None,
    '{"status": 500}': None,
    '{"message": "the error field"}': None,
    '[{"error": "x"}]': None,
    '{"error": "cut': None,
    '{"a":' * 10_000 + '"error"': None,
}


def test_soft_rules(tmp_path: Path) -> None:
    """Only what stands at the top of a result counts, not words within it; all are successes."""
    messages: list[dict[str, Any]] = []
    for number, text in enumerate(RULES):
        use = {"type": "tool_use", "id": f"c{number}", "name": "t", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": text}
        messages += [
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"messages": messages}))
    (found,) = parsed(path)
    assert {text: call.soft for text, call in zip(RULES, found.calls, strict=True)} == RULES
    assert {call.status for call in found.calls} == {"ok"}


def test_the_rules_are_those_of_the_documentation() -> None:
    """Every rule that marks a success is in the table, and no other."""
    names = {f"soft:{rule}" for rule in RULES.values() if rule} | {"soft:interrupted"}
    assert {row[0] for row in table("soft")} == names
