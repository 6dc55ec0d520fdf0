"""What a failure of a span says where its text says nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.collector.importers.documented import table

from toolfault_collector.importers.classify import Classification, classify
from toolfault_collector.otlp.calls.failures import SOFT_RULES, rule_of_failure, soft_failure
from toolfault_collector.otlp.encoding.items import MAX_TEXT, Room


def _classified(text: str, **known: Any) -> Classification:
    return classify(text, rule=rule_of_failure(text, **known))


@pytest.mark.parametrize("row", table("types"), ids=lambda row: str(row[0]))
def test_the_type_of_an_error_decides_where_its_text_does_not(row: list[str]) -> None:
    """As docs/classification.md shows it, as exception and as error.type, with held-back texts."""
    name, rule = row
    for text in ("", "Tool execution failed. Error details are redacted."):
        assert _classified(text, error_type=name).rule == rule
        assert _classified(text, exception_type=name, error_type="_OTHER").rule == rule


def test_a_text_that_says_something_decides() -> None:
    """A validation error that lists faults is taken apart, whatever its class."""
    text = "1 validation error for book\nseats\n  Field required [type=missing, input_value={}]"
    assert rule_of_failure(text, error_type="TimeoutError") is None
    assert _classified(text, error_type="TimeoutError").field == "seats"
    assert _classified("user not found", exception_type="ValueError").code == "not_found"


def test_arguments_that_are_no_json_are_told_by_themselves() -> None:
    """A framework that redacts its errors still sends what the model wrote."""
    held_back = "Error running tool (non-fatal): {'error': '... Error details are redacted.'}"
    found = _classified(held_back, arguments='{"seats": 4', error_type="_OTHER")
    assert found.code == "malformed_json"
    assert _classified(held_back, arguments='{"seats": 4}').code == "unclassified"


def test_arguments_that_were_cut_here_are_no_fault_of_the_model() -> None:
    """What the receiver leaves out of a long text is not missing in what the model wrote."""
    text = json.dumps({"page": "x" * MAX_TEXT})
    cut = Room().text(text)
    assert len(cut) < len(text)
    assert _classified("", arguments=cut).code == "unclassified"


def test_the_soft_rules_are_those_of_the_table() -> None:
    """In their order, each with an example that no rule above it takes."""
    rows = table("soft-spans")
    assert [name for name, *_ in rows] == list(SOFT_RULES)
    for name, _, example in rows[1:]:
        found = soft_failure(example)
        assert found is not None
        assert found[0] == name
